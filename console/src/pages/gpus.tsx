import { createEffect, createMemo, createSignal, For, type JSX, Show } from "solid-js";
import { useEnergyView } from "../data/use-energy.ts";
import { count, gibibytes, plural, watts } from "../data/format.ts";
import { sumGpus } from "../data/gpu-state.ts";
import { now } from "../data/server-clock.ts";
import { EnergyPanel } from "../parts/energy-panel.tsx";
import { GpuCard, SkeletonGpuCard } from "../parts/gpu-card.tsx";
import { GpuHostDialog, PusherCommands } from "../parts/gpu-host-dialog.tsx";
import { Icon } from "../parts/icon.tsx";
import { Empty, Figure, Page } from "../parts/page.tsx";
import { useGpus } from "../data/queries.ts";
import { rememberCount, rememberedCount } from "../data/browser-settings.ts";

/** A card for each GPU that ever reported; the figures above are of those that report now. */
export function GpusPage(): JSX.Element {
  const gpus = useGpus();
  const energy = useEnergyView();
  createEffect(() => gpus.data && rememberCount("gpus", gpus.data.length));
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
            <Empty title="No GPU has reported yet">
              <PusherCommands />
            </Empty>
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
        <EnergyPanel view={energy} />
      </Show>
      <Show when={adding()}>
        <GpuHostDialog onClose={() => setAdding(false)} />
      </Show>
    </Page>
  );
}

const SkeletonCards = (): JSX.Element => (
  <For each={Array.from({ length: rememberedCount("gpus", 4) })}>{() => <SkeletonGpuCard />}</For>
);

/** What no GPU tells is a dash, not a zero. */
const told = (value: number | undefined, format: (value: number) => string): string =>
  value === undefined ? "–" : format(value);
