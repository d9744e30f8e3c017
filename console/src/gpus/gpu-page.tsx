import { A, useParams } from "@solidjs/router";
import { type JSX, Show } from "solid-js";
import { memory, watts } from "../lib/format.ts";
import { Figure } from "../ui/figure.tsx";
import { Page, type PageSource } from "../ui/page.tsx";
import { EmptyState, NotLoaded } from "../ui/panel.tsx";
import { RelativeTime } from "../ui/relative-time.tsx";
import { GpuHistoryPanel } from "./gpu-history-panel.tsx";
import { GpuNotes } from "./gpu-notes.tsx";
import { type Gpu, useGpusQuery } from "./queries.ts";
import { shownAtOf, ShownAtProvider, useShownAt } from "./shown-at.ts";
import { useGpuHistory } from "./use-gpu-history.ts";

/** One GPU: its latest sample and its history. */
export function GpuPage(): JSX.Element {
  const parameters = useParams<{ id: string }>();
  return (
    <Show when={parameters.id} keyed>
      {(id) => <GpuDetails id={/^\d{1,3}$/.test(id) ? Number(id) : undefined} />}
    </Show>
  );
}

/** @param props.id undefined: the URL names none */
function GpuDetails(props: { id: number | undefined }): JSX.Element {
  const gpus = useGpusQuery();
  const gpu = (): Gpu | undefined => gpus.data?.find(({ gpu_id }) => gpu_id === props.id);
  const shown = shownAtOf(gpus);
  const history = useGpuHistory(() => gpu()?.gpu_id);
  const sources = (): PageSource[] => [
    { name: "Latest sample", query: gpus },
    // Without a GPU its history does not load, and a refresh must not load it either.
    ...(gpu() === undefined
      ? []
      : [{ name: "History", query: history.query, fetchedAt: history.fetchedAt(), slow: true }]),
  ];
  const isUnknown = (): boolean => gpus.data !== undefined && gpu() === undefined;
  return (
    <Page
      title={`GPU ${props.id ?? ""}`.trimEnd()}
      help="watching#gpus"
      sources={sources()}
      actions={
        <A class="button" href="/gpus">
          All GPUs
        </A>
      }
    >
      <Show when={!isUnknown()} fallback={<UnknownGpu />}>
        <ShownAtProvider value={shown}>
          <p class="gpu-title">
            <Show when={gpu()} fallback="…">
              {(known) => (
                <>
                  {known().name}
                  <Show when={known().host}>{(host) => <span> on {host()}</span>}</Show> <GpuNotes gpu={known()} />
                </>
              )}
            </Show>
          </p>
          <LatestFigures gpu={gpu()} failed={gpus.isError} />
        </ShownAtProvider>
        <Show when={gpus.data === undefined && gpus.isError} fallback={<GpuHistoryPanel state={history} />}>
          <section class="panel" aria-label="History">
            <NotLoaded query={gpus} />
          </section>
        </Show>
      </Show>
    </Page>
  );
}

const UnknownGpu = (): JSX.Element => (
  <section class="panel" aria-label="GPU">
    <EmptyState title="This GPU has not reported in the last seven days" />
  </section>
);

function LatestFigures(props: { gpu: Gpu | undefined; failed: boolean }): JSX.Element {
  const { at, isOld } = useShownAt();
  const value = (read: (gpu: Gpu) => number | null, format: (value: number) => string): string | undefined => {
    if (props.gpu === undefined) return undefined;
    const known = read(props.gpu);
    return known === null ? "–" : format(known);
  };
  const total = (): number | null | undefined => props.gpu?.memory_total_mb;
  return (
    <dl class="figures" classList={{ old: isOld() }}>
      <Figure
        label={isOld() ? "Power when last loaded" : "Power"}
        failed={props.failed}
        value={value((gpu) => gpu.power_draw_w, watts)}
        note={isOld() && <RelativeTime at={at()} />}
      />
      <Figure
        label="Utilisation"
        failed={props.failed}
        value={value(
          (gpu) => gpu.utilization_pct,
          (percent) => `${percent}%`,
        )}
      />
      <Figure
        label="Memory"
        failed={props.failed}
        value={value((gpu) => gpu.memory_used_mb, memory)}
        note={typeof total() === "number" && `of ${memory(total() ?? 0)}`}
      />
      <Figure
        label="Temperature"
        failed={props.failed}
        value={value(
          (gpu) => gpu.temp_c,
          (celsius) => `${celsius} °C`,
        )}
      />
    </dl>
  );
}
