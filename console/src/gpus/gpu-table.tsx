import { A } from "@solidjs/router";
import { createMemo, For, type JSX, Show } from "solid-js";
import { savedCount } from "../lib/browser-settings.ts";
import { gibibytes, watts } from "../lib/format.ts";
import { SkeletonRows } from "../ui/skeleton.tsx";
import { SortableHead } from "../ui/table.tsx";
import { GpuName } from "./gpu-name.tsx";
import { GpuNotes } from "./gpu-notes.tsx";
import { gpuColumns, type GpuSort, sortGpus } from "./gpu-sort.ts";
import { isFull, isHot, isStale, memoryShare } from "./gpu-state.ts";
import type { Gpu } from "./queries.ts";
import { useShownAt } from "./shown-at.ts";

interface GpuTableProps {
  /** Undefined while they load. */
  gpus: readonly Gpu[] | undefined;
  sort: GpuSort | undefined;
  onSort: (next: GpuSort) => void;
}

/** So many fit on a screen. */
const maxSkeletonRows = 16;

/** A row for each GPU; what needs attention is first, unless a column was clicked. */
export function GpuTable(props: GpuTableProps): JSX.Element {
  const { at } = useShownAt();
  const sorted = createMemo(() => sortGpus(props.gpus ?? [], props.sort, at()));
  const hasHosts = (): boolean => props.gpus?.some(({ host }) => host !== null) ?? false;
  return (
    <div class="table-scroll">
      <table class="gpu-table">
        <caption class="visually-hidden">GPUs</caption>
        <GpuTableHead {...props} showsHost={hasHosts()} />
        <tbody>
          <For
            each={sorted()}
            fallback={<SkeletonRows columns={6} rows={Math.min(maxSkeletonRows, savedCount("gpus", 4))} />}
          >
            {(gpu) => <GpuRow gpu={gpu} showsHost={hasHosts()} />}
          </For>
        </tbody>
      </table>
    </div>
  );
}

function GpuTableHead(props: Omit<GpuTableProps, "gpus"> & { showsHost: boolean }): JSX.Element {
  const Sortable = (head: { column: keyof typeof gpuColumns; label: string; number?: boolean }): JSX.Element => (
    <SortableHead {...head} columns={gpuColumns} sort={props.sort} onSort={props.onSort} />
  );
  return (
    <thead>
      <tr>
        <Sortable column="gpu" label="GPU" />
        <th scope="col" class="rank-2 model">
          Model
        </th>
        <Show when={props.showsHost}>
          <th scope="col" class="rank-2">
            Host
          </th>
        </Show>
        <Sortable column="utilisation" label="Utilisation" number />
        <Sortable column="memory" label="Memory" number />
        <Sortable column="power" label="Power" number />
        <Sortable column="temperature" label="Temperature" number />
      </tr>
    </thead>
  );
}

function GpuRow(props: { gpu: Gpu; showsHost: boolean }): JSX.Element {
  const share = (): number | undefined => memoryShare(props.gpu);
  const { at, isOld } = useShownAt();
  const stale = (): boolean => isOld() || isStale(props.gpu, at());
  return (
    <tr classList={{ stale: stale() }}>
      <th scope="row">
        <A href={`/gpus/${props.gpu.gpu_id}`}>{props.gpu.gpu_id}</A>
        <GpuNotes gpu={props.gpu} />
      </th>
      <td class="rank-2 model">
        <GpuName name={props.gpu.name} />
      </td>
      <Show when={props.showsHost}>
        <td class="rank-2 model" title={props.gpu.host ?? undefined}>
          {props.gpu.host ?? "–"}
        </td>
      </Show>
      <BarCell
        share={props.gpu.utilization_pct === null ? undefined : props.gpu.utilization_pct / 100}
        title={undefined}
        tone={undefined}
      />
      <BarCell
        share={share()}
        title={`${gibibytes(props.gpu.memory_used_mb ?? 0)} of ${gibibytes(props.gpu.memory_total_mb ?? 0)} GiB`}
        tone={!stale() && isFull(props.gpu) ? "warn" : undefined}
      />
      <td class="number">{props.gpu.power_draw_w === null ? "–" : watts(props.gpu.power_draw_w)}</td>
      <td class="number" data-tone={!stale() && isHot(props.gpu) ? "bad" : undefined}>
        {props.gpu.temp_c === null ? "–" : `${props.gpu.temp_c} °C`}
      </td>
    </tr>
  );
}

/** A share with a bar below it, so that a column reads as a strip. */
function BarCell(props: {
  share: number | undefined;
  title: string | undefined;
  tone: "warn" | undefined;
}): JSX.Element {
  return (
    <td class="number share-cell" data-tone={props.tone} title={props.share === undefined ? undefined : props.title}>
      <Show when={props.share !== undefined} fallback="–">
        {Math.round((props.share ?? 0) * 100)}%
        <span class="share-bar" style={{ "--share": props.share ?? 0 }} />
      </Show>
    </td>
  );
}
