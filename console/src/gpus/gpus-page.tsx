// GPUs, their history and their energy.
//
// It keeps true: a sample that is too old is no value of now: the sums leave it out (`gpu-state.ts`). A value that is
// not reported is a dash and not a zero. Energy per token comes only from buckets in which the power is known
// (`energy.ts`).

import { createEffect, createMemo, createSignal, type JSX, Show } from "solid-js";
import { saveCount, savedCount } from "../lib/browser-settings.ts";
import { count, memory, plural, watts } from "../lib/format.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { formatSort, parseSort } from "../lib/sort.ts";
import { Button } from "../ui/controls.tsx";
import { Figure } from "../ui/figure.tsx";
import { Page } from "../ui/page.tsx";
import { EmptyState, NotLoaded } from "../ui/panel.tsx";
import { RelativeTime } from "../ui/relative-time.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import { EnergyPanel } from "./energy-panel.tsx";
import { GpuAgentCommands, GpuHostDialog } from "./gpu-host-dialog.tsx";
import { gpuColumns } from "./gpu-sort.ts";
import { type GpuSums, sumGpus } from "./gpu-state.ts";
import { GpuTable } from "./gpu-table.tsx";
import { type Gpu, useGpusQuery } from "./queries.ts";
import { shownAtOf, ShownAtProvider, useShownAt } from "./shown-at.ts";
import { SharedGpusNotice } from "./shared-gpus-notice.tsx";
import { UsageIn } from "../usage/usage-of.tsx";
import { useEnergy } from "./use-energy.ts";

/** Each GPU that ever reported, sums over those that report now, and their energy. */
export function GpusPage(): JSX.Element {
  const gpus = useGpusQuery();
  const energy = useEnergy();
  createEffect(() => gpus.data && saveCount("gpus", gpus.data.length));
  const [adding, setAdding] = createSignal(false);
  const shown = shownAtOf(gpus);
  const [parameters, setParameters] = useUrlParameters<"sort">();

  return (
    <Page
      title="GPUs"
      help="watching#gpus"
      sources={[
        { name: "GPUs", query: gpus },
        { name: "Power", query: energy.power.query, fetchedAt: energy.power.fetchedAt(), slow: true },
        { name: "Output tokens", query: energy.usage.query, fetchedAt: energy.usage.fetchedAt(), slow: true },
      ]}
      actions={
        <Button icon="plus" onClick={() => setAdding(true)}>
          Add a GPU host
        </Button>
      }
    >
      <Show when={(gpus.data?.length ?? savedCount("gpus", 1)) > 0}>
        <SectionTabs section="backends" label="Backends" />
      </Show>
      <SharedGpusNotice gpus={gpus.data ?? []} />
      <Show when={gpus.data?.length !== 0} fallback={<NoGpus />}>
        <ShownAtProvider value={shown}>
          <GpuFigures gpus={gpus.data} failed={gpus.isError} />
          <section class="panel" aria-label="GPUs">
            <Show when={gpus.data !== undefined || !gpus.isError} fallback={<NotLoaded query={gpus} />}>
              <GpuTable
                gpus={gpus.data}
                sort={parseSort(parameters.sort, gpuColumns)}
                onSort={(next) => setParameters({ sort: formatSort(next) }, { replace: true })}
              />
            </Show>
          </section>
        </ShownAtProvider>
        <EnergyPanel state={energy} />
        <Show when={energy.chosen().zoom}>{(span) => <UsageIn span={span()} />}</Show>
      </Show>
      <Show when={adding()}>
        <GpuHostDialog gpus={gpus.data ?? []} onClose={() => setAdding(false)} />
      </Show>
    </Page>
  );
}

const NoGpus = (): JSX.Element => (
  <section class="panel" aria-label="GPUs">
    <EmptyState title="No GPU has reported yet">
      <GpuAgentCommands gpus={[]} />
    </EmptyState>
  </section>
);

/** @param props.gpus undefined while they load */
function GpuFigures(props: { gpus: Gpu[] | undefined; failed: boolean }): JSX.Element {
  const { at, isOld } = useShownAt();
  const sums = createMemo(() => props.gpus && sumGpus(props.gpus, at()));
  const value = (field: keyof GpuSums, format: (value: number) => string): string | undefined => {
    const known = sums();
    return known && formatOrDash(known[field], format);
  };
  return (
    <dl class="figures" classList={{ old: isOld() }}>
      <Figure
        label={isOld() ? "Power when last loaded" : "Power now"}
        failed={props.failed}
        value={value("powerW", watts)}
        note={
          isOld() ? (
            <RelativeTime at={at()} />
          ) : (
            sums() && `${sums()?.reporting} of ${plural(props.gpus?.length ?? 0, "GPU")} reporting`
          )
        }
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
        value={value("memoryUsedMb", memory)}
        note={sums()?.memoryTotalMb !== undefined && `of ${memory(sums()?.memoryTotalMb ?? 0)}`}
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
