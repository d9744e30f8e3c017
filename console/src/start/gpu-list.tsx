import { A } from "@solidjs/router";
import { For, type JSX, Show } from "solid-js";
import { GpuName } from "../gpus/gpu-name.tsx";
import { count, watts } from "../lib/format.ts";
import { EmptyState } from "../ui/panel.tsx";
import { SkeletonList } from "../ui/skeleton.tsx";
import type { Overview } from "./queries.ts";

const maxRows = 6;

/** @param props.gpus undefined while they load */
export function GpuList(props: { gpus: Overview["gpus"] | undefined }): JSX.Element {
  return (
    <Show when={props.gpus} fallback={<SkeletonList />}>
      {(gpus) => (
        <ul class="list">
          <For each={gpus().slice(0, maxRows)} fallback={<NoGpus />}>
            {(gpu) => <GpuItem gpu={gpu} />}
          </For>
          <Show when={gpus().length > maxRows}>
            <li class="faint">
              <A href="/gpus">and {count(gpus().length - maxRows)} more</A>
            </li>
          </Show>
        </ul>
      )}
    </Show>
  );
}

const NoGpus = (): JSX.Element => (
  <li>
    <EmptyState title="No GPU has reported yet">
      <A class="button" href="/gpus">
        Add a GPU host
      </A>
    </EmptyState>
  </li>
);

function GpuItem(props: { gpu: Overview["gpus"][number] }): JSX.Element {
  const power = (): string => (props.gpu.power_draw_w === null ? "–" : watts(props.gpu.power_draw_w));
  const share = (): number => (props.gpu.stale ? 0 : (props.gpu.utilization_pct ?? 0) / 100);
  return (
    <li classList={{ stale: props.gpu.stale }}>
      <span class="name">
        <span class="gpu-number">{props.gpu.gpu_id}</span>
        <GpuName name={props.gpu.name} />
      </span>
      <span class="value">{props.gpu.stale ? "Stale" : power()}</span>
      <span class="share series-3" style={{ "--share": share() }} />
    </li>
  );
}
