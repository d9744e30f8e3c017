import { createEffect, createMemo, createSignal, For, type JSX, Show } from "solid-js";
import { useEnergy } from "../data/use-energy.ts";
import { count, gibibytes, plural, watts } from "../data/format.ts";
import { sumGpus } from "../data/gpu-state.ts";
import { now } from "../data/server-clock.ts";
import { EnergyPanel } from "../parts/energy-panel.tsx";
import { GpuCard, SkeletonGpuCard } from "../parts/gpu-card.tsx";
import { GpuHostDialog, GpuAgentCommands } from "../parts/gpu-host-dialog.tsx";
import { Icon } from "../parts/icon.tsx";
import { EmptyState, Figure, Page } from "../parts/page.tsx";
import { useGpusQuery } from "../data/queries.ts";
import { saveCount, savedCount } from "../data/browser-settings.ts";

/** A card for each GPU that ever reported; the figures above are of those that report now. */
export function GpusPage(): JSX.Element {
  const gpus = useGpusQuery();
  const energy = useEnergy();
  createEffect(() => gpus.data && saveCount("gpus", gpus.data.length));
  const [adding, setAdding] = createSignal(false);
  const sums = createMemo(() => gpus.data && sumGpus(gpus.data, now()));

  return (
    <Page
      title="GPUs"
      queries={[gpus]}
      slowQueries={energy.queries}
      actions={
        <button class="button" type="button" onClick={() => setAdding(true)}>
          <Icon name="plus" />
          Add a GPU host
        </button>
      }
    >
      <Show
        when={gpus.data?.length !== 0}
        fallback={
          <section class="panel" aria-label="GPUs">
            <EmptyState title="No GPU has reported yet">
              <GpuAgentCommands />
            </EmptyState>
          </section>
        }
      >
        <dl class="figures">
          <Figure
            label="Power now"
            value={sums() && told(sums()?.powerW, watts)}
            note={sums() && `${sums()?.reporting} of ${plural(gpus.data?.length ?? 0, "GPU")} reporting`}
          />
          <Figure
            label="Utilisation"
            value={sums() && told(sums()?.utilizationPct, (mean) => `${Math.round(mean)}%`)}
            note="Mean of those that report"
          />
          <Figure
            label="Memory"
            value={sums() && told(sums()?.memoryUsedMb, (used) => `${gibibytes(used)} GiB`)}
            note={sums()?.memoryTotalMb !== undefined && `of ${gibibytes(sums()?.memoryTotalMb ?? 0)} GiB`}
          />
          <Figure label="Hottest" value={sums() && told(sums()?.hottestC, (hottest) => `${count(hottest)} °C`)} />
        </dl>
        <h2 class="visually-hidden">Each GPU</h2>
        <div class="gpus">
          <For each={gpus.data} fallback={<SkeletonCards />}>
            {(gpu) => <GpuCard gpu={gpu} />}
          </For>
        </div>
      </Show>
      <Show when={gpus.data?.length !== 0}>
        <EnergyPanel state={energy} />
      </Show>
      <Show when={adding()}>
        <GpuHostDialog onClose={() => setAdding(false)} />
      </Show>
    </Page>
  );
}

const SkeletonCards = (): JSX.Element => (
  <For each={Array.from({ length: savedCount("gpus", 4) })}>{() => <SkeletonGpuCard />}</For>
);

/** What no GPU tells is a dash, not a zero. */
const told = (value: number | undefined, format: (value: number) => string): string =>
  value === undefined ? "–" : format(value);
