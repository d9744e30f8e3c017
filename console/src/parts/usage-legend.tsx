import { createEffect, createMemo, createSignal, For, type JSX, Show } from "solid-js";
import { saveCount, savedCount } from "../data/browser-settings.ts";
import { plural } from "../data/format.ts";
import type { RankedKey } from "../data/key-ranking.ts";
import type { TimeSpan } from "../data/time-range.ts";
import { addSums, sumsIn } from "../data/usage-history.ts";
import { otherId } from "../data/usage-view.ts";
import type { UsageFilters } from "../data/use-usage-filters.ts";
import { createInfiniteScroll, MoreRows } from "./infinite-scroll.tsx";
import { SkeletonRows } from "./skeleton.tsx";
import { LegendRow } from "./usage-legend-row.tsx";

interface UsageLegendProps {
  ranked: readonly RankedKey[];
  filters: UsageFilters;
  span: TimeSpan;
  loading: boolean;
}

/** How many rows to reserve space for while they load. */
const skeletonRows = 8;

/** The keys of the chart with their sums: those with a colour of their own, and the others, as one until they are opened. */
export function UsageLegend(props: UsageLegendProps): JSX.Element {
  const top = createMemo(() => props.ranked.filter(({ colour }) => colour > 0));
  const others = createMemo(() => props.ranked.filter(({ colour }) => colour === 0));
  const [showsOthers, setShowsOthers] = createSignal(false);
  const scroll = createInfiniteScroll(() => (showsOthers() ? others().map(({ key }) => key.id) : []));
  createEffect(() => top().length > 0 && saveCount("legend", top().length + Math.min(1, others().length)));
  return (
    <Show when={props.loading || props.ranked.length > 0}>
      <div class="table-scroll legend">
        <table class="cards-on-phone">
          <caption class="visually-hidden">Keys in the chart</caption>
          <LegendHead />
          <tbody>
            <Show when={props.loading && props.ranked.length === 0}>
              <SkeletonRows columns={4} rows={Math.min(skeletonRows, savedCount("legend", skeletonRows))} />
            </Show>
            <KeyRows {...props} ids={top().map(({ key }) => key.id)} />
            <Show when={others().length > 0}>
              <OtherRow
                {...props}
                top={top()}
                others={others()}
                open={showsOthers()}
                onToggleOpen={() => setShowsOthers(!showsOthers())}
              />
            </Show>
            <KeyRows {...props} ids={scroll.shown()} />
          </tbody>
        </table>
        <MoreRows scroll={scroll} />
      </div>
      <HiddenNote filters={props.filters} />
    </Show>
  );
}

const LegendHead = (): JSX.Element => (
  <thead>
    <tr>
      <th scope="col">Key</th>
      <For each={["Requests", "Input", "Output"]}>
        {(label) => (
          <th scope="col" class="number">
            {label}
          </th>
        )}
      </For>
    </tr>
  </thead>
);

function HiddenNote(props: { filters: UsageFilters }): JSX.Element {
  return (
    <Show when={props.filters.hiddenIds().size > 0}>
      <p class="table-foot">
        {props.filters.hiddenIds().size} hidden.{" "}
        <button class="link" type="button" onClick={() => props.filters.setHiddenIds(new Set())}>
          Show all
        </button>
      </p>
    </Show>
  );
}

function toggleHidden(filters: UsageFilters, id: number): void {
  const ids = new Set(filters.hiddenIds());
  if (!ids.delete(id)) ids.add(id);
  filters.setHiddenIds(ids);
}

/** Rows are keyed by id: each refresh creates new objects, and replaced rows would lose the focus. */
function KeyRows(props: UsageLegendProps & { ids: readonly number[] }): JSX.Element {
  const byId = createMemo(() => new Map(props.ranked.map((ranked) => [ranked.key.id, ranked])));
  const isOnly = (id: number): boolean => props.filters.key() === String(id);
  const showOnly = (id: number): void => (isOnly(id) ? props.filters.showAllKeys() : props.filters.showOnly(id));
  return (
    <For each={props.ids}>
      {(id) => (
        <Show when={byId().get(id)}>
          {(ranked) => (
            <LegendRow
              name={ranked().key.name}
              colour={ranked().colour}
              sums={sumsIn(ranked().key, props.span)}
              shown={!props.filters.hiddenIds().has(id)}
              isOnly={isOnly(id)}
              onToggle={() => toggleHidden(props.filters, id)}
              onShowOnly={() => showOnly(id)}
            />
          )}
        </Show>
      )}
    </For>
  );
}

interface OtherRowProps {
  filters: UsageFilters;
  span: TimeSpan;
  top: readonly RankedKey[];
  others: readonly RankedKey[];
  open: boolean;
  onToggleOpen: () => void;
}

/** The keys without a colour of their own, with their sum. */
function OtherRow(props: OtherRowProps): JSX.Element {
  const isOnly = (): boolean =>
    props.top.length > 0 && props.top.every(({ key }) => props.filters.hiddenIds().has(key.id));
  const showOnly = (): void => props.filters.setHiddenIds(new Set(isOnly() ? [] : props.top.map(({ key }) => key.id)));
  return (
    <LegendRow
      name={`Other (${plural(props.others.length, "key")})`}
      colour={0}
      sums={addSums(props.others.map(({ key }) => sumsIn(key, props.span)))}
      shown={!props.filters.hiddenIds().has(otherId)}
      isOnly={isOnly()}
      onToggle={() => toggleHidden(props.filters, otherId)}
      onShowOnly={showOnly}
    >
      <button class="link" type="button" aria-expanded={props.open} onClick={() => props.onToggleOpen()}>
        {props.open ? "Hide list" : "List"}
      </button>
    </LegendRow>
  );
}
