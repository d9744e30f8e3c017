import { createEffect, createMemo, createSignal, For, type JSX, Show } from "solid-js";
import { saveCount, savedCount } from "../data/browser-settings.ts";
import { count, gibibytes, plural, watts } from "../data/format.ts";
import { type GpuSums, sumGpus } from "../data/gpu-state.ts";
import { type Gpu, useGpusQuery } from "../data/queries.ts";
import { now } from "../data/server-clock.ts";
import { useEnergy } from "../data/use-energy.ts";
import { EnergyPanel } from "../parts/energy-panel.tsx";
import { Figure } from "../parts/figure.tsx";
import { GpuCard, SkeletonGpuCard } from "../parts/gpu-card.tsx";
import { GpuAgentCommands, GpuHostDialog } from "../parts/gpu-host-dialog.tsx";
import { Icon } from "../parts/icon.tsx";
import { Page } from "../parts/page.tsx";
import { EmptyState, NotLoaded } from "../parts/panel.tsx";

/** A card for each GPU that ever reported, sums over those that report now, and their energy. */
export function GpusPage(): JSX.Element {
  const gpus = useGpusQuery();
  const energy = useEnergy();
  createEffect(() => gpus.data && saveCount("gpus", gpus.data.length));
  const [adding, setAdding] = createSignal(false);

  return (
    <Page
      title="GPUs"
      sources={[
        { name: "GPUs", query: gpus },
        { name: "Power", query: energy.power.query, fetchedAt: energy.power.fetchedAt(), slow: true },
        { name: "Output tokens", query: energy.usage.query, fetchedAt: energy.usage.fetchedAt(), slow: true },
      ]}
      actions={
        <button class="button" type="button" onClick={() => setAdding(true)}>
          <Icon name="plus" />
          Add a GPU host
        </button>
      }
    >
      <Show when={gpus.data?.length !== 0} fallback={<NoGpus />}>
        <GpuFigures gpus={gpus.data} failed={gpus.isError} />
        <h2 class="visually-hidden">All GPUs</h2>
        <Show
          when={gpus.data !== undefined || !gpus.isError}
          fallback={
            <section class="panel" aria-label="GPUs">
              <NotLoaded error={gpus.error} />
            </section>
          }
        >
          <div class="gpus">
            <For each={gpus.data} fallback={<SkeletonCards />}>
              {(gpu) => <GpuCard gpu={gpu} />}
            </For>
          </div>
        </Show>
        <EnergyPanel state={energy} />
      </Show>
      <Show when={adding()}>
        <GpuHostDialog onClose={() => setAdding(false)} />
      </Show>
    </Page>
  );
}

const NoGpus = (): JSX.Element => (
  <section class="panel" aria-label="GPUs">
    <EmptyState title="No GPU has reported yet">
      <GpuAgentCommands />
    </EmptyState>
  </section>
);

const SkeletonCards = (): JSX.Element => (
  <For each={Array.from({ length: savedCount("gpus", 4) })}>{() => <SkeletonGpuCard />}</For>
);

/** @param props.gpus undefined while they load */
function GpuFigures(props: { gpus: Gpu[] | undefined; failed: boolean }): JSX.Element {
  const sums = createMemo(() => props.gpus && sumGpus(props.gpus, now()));
  const value = (field: keyof GpuSums, format: (value: number) => string): string | undefined => {
    const known = sums();
    return known && formatOrDash(known[field], format);
  };
  return (
    <dl class="figures">
      <Figure
        label="Power now"
        failed={props.failed}
        value={value("powerW", watts)}
        note={sums() && `${sums()?.reporting} of ${plural(props.gpus?.length ?? 0, "GPU")} reporting`}
      />
      <Figure
        label="Utilisation"
        failed={props.failed}
        value={value("utilizationPct", (mean) => `${Math.round(mean)}%`)}
        note="Mean of reporting GPUs"
      />
      <Figure
        label="Memory"
        failed={props.failed}
        value={value("memoryUsedMb", (used) => `${gibibytes(used)} GiB`)}
        note={sums()?.memoryTotalMb !== undefined && `of ${gibibytes(sums()?.memoryTotalMb ?? 0)} GiB`}
      />
      <Figure
        label="Highest temperature"
        failed={props.failed}
        value={value("hottestC", (hottest) => `${count(hottest)} °C`)}
      />
    </dl>
  );
}

/** A value that no GPU reports is a dash, not a zero. */
const formatOrDash = (value: number | undefined, format: (value: number) => string): string =>
  value === undefined ? "–" : format(value);
