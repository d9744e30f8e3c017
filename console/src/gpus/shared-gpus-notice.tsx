import { For, type JSX } from "solid-js";
import { plural } from "../lib/format.ts";
import { HandbookLink } from "../ui/handbook-link.tsx";
import { Icon } from "../ui/icon.tsx";
import { listSharedIds } from "./gpu-hosts.ts";
import type { Gpu } from "./queries.ts";

/** Two hosts that send the same ids: each overwrites the samples of the other. */
export function SharedGpusNotice(props: { gpus: readonly Gpu[] }): JSX.Element {
  return (
    <For each={listSharedIds(props.gpus)}>
      {({ hosts, gpuIds }) => (
        <div class="notice" role="status" data-tone="warning">
          <Icon name="warning" />
          <p>
            {hosts} send the same {plural(gpuIds.length, "GPU id")}: {gpuIds.join(", ")}. Set{" "}
            <code>--gpu-id-offset</code> on one of them; until then their readings are mixed.{" "}
            <HandbookLink to="watching#gpus">GPU hosts</HandbookLink>
          </p>
        </div>
      )}
    </For>
  );
}
