import { createEffect, createMemo, createSignal, For, type JSX, Show } from "solid-js";
import { saveCount, savedCount } from "../lib/browser-settings.ts";
import { count } from "../lib/format.ts";
import { createInfiniteScroll, MoreRows } from "../ui/infinite-scroll.tsx";
import { SkeletonRows } from "../ui/skeleton.tsx";
import { NumberHeads } from "../ui/number-columns.tsx";
import type { RankedKey } from "./key-ranking.ts";
import type { OtherKeys, UsageBuckets } from "./usage-buckets.ts";
import { UsageCells } from "./usage-cells.tsx";
import type { UsageSums } from "./usage-sums.ts";
import { otherId, otherLabel } from "./usage-view.ts";
import type { UsageFilters } from "./use-usage-filters.ts";

interface UsageLegendProps {
  ranked: readonly RankedKey[];
  filters: UsageFilters;
  buckets: UsageBuckets | undefined;
  loading: boolean;
}

/** How many rows to reserve space for while they load. */
const skeletonRows = 8;

/** The keys of the chart with their sums: those with a colour of their own, and the others, as one until they are opened. */
export function UsageLegend(props: UsageLegendProps): JSX.Element {
  const hasRow = ({ key, colour }: RankedKey): boolean => colour > 0 || props.filters.hiddenIds().has(key.id);
  const top = createMemo(() => props.ranked.filter(hasRow));
  const others = createMemo(() => props.ranked.filter((one) => !hasRow(one)));
  const [showsOthers, setShowsOthers] = createSignal(false);
  const scroll = createInfiniteScroll(() => (showsOthers() ? others().map(({ key }) => key.id) : []), {
    // Not the hidden keys: the user hides a key in its row of this list.
    choice: () => JSON.stringify([showsOthers(), props.filters.metric(), props.filters.search(), props.filters.key()]),
  });
  createEffect(() => top().length > 0 && saveCount("legend", top().length + Math.min(1, others().length)));
  return (
    <Show when={props.loading || props.ranked.length > 0}>
      <div class="table-scroll legend">
        <table class="cards-on-phone sums">
          <caption class="visually-hidden">Keys in the chart</caption>
          <LegendHead />
          <tbody>
            <Show when={props.loading && props.ranked.length === 0}>
              <SkeletonRows columns={4} rows={Math.min(skeletonRows, savedCount("legend", skeletonRows))} />
            </Show>
            <KeyRows {...props} ids={top().map(({ key }) => key.id)} />
            <Show when={props.buckets !== undefined && props.buckets.other.keyCount > 0 && props.buckets.other}>
              {(other) => (
                <OtherRow
                  filters={props.filters}
                  topIds={top().map(({ key }) => key.id)}
                  other={other()}
                  open={showsOthers()}
                  onToggleOpen={() => setShowsOthers(!showsOthers())}
                />
              )}
            </Show>
            <KeyRows {...props} ids={scroll.shown()} />
          </tbody>
        </table>
        <MoreRows scroll={scroll} />
        <Show when={showsOthers() && (props.buckets?.keyCount ?? 0) > props.ranked.length}>
          <p class="table-foot">
            {count((props.buckets?.keyCount ?? 0) - props.ranked.length)} more keys with less usage.
          </p>
        </Show>
      </div>
      <HiddenNote filters={props.filters} />
    </Show>
  );
}

const LegendHead = (): JSX.Element => (
  <thead>
    <tr>
      <th scope="col">Key</th>
      <NumberHeads labels={["Requests", "Input", "Output"]} />
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
              sums={ranked().key.sums}
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
  topIds: readonly number[];
  other: OtherKeys;
  open: boolean;
  onToggleOpen: () => void;
}

/** The keys without a colour of their own, with their sum. Without the top keys, the first of them get one. */
function OtherRow(props: OtherRowProps): JSX.Element {
  return (
    <LegendRow
      name={otherLabel(props.other.keyCount)}
      colour={0}
      sums={props.other.sums}
      shown={!props.filters.hiddenIds().has(otherId)}
      isOnly={false}
      onToggle={() => toggleHidden(props.filters, otherId)}
      onShowOnly={() => props.filters.setHiddenIds(new Set(props.topIds))}
    >
      <button class="link" type="button" aria-expanded={props.open} onClick={() => props.onToggleOpen()}>
        {props.open ? "Hide list" : "List"}
      </button>
    </LegendRow>
  );
}

interface LegendRowProps {
  name: string;
  colour: number;
  sums: UsageSums;
  /** Whether the chart shows it. */
  shown: boolean;
  /** Whether the chart shows nothing else. */
  isOnly: boolean;
  onToggle: () => void;
  onShowOnly: () => void;
  children?: JSX.Element;
}

/** The box shows or hides one part of the chart. Its name shows only that part; with a modifier it hides the part, too. */
function LegendRow(props: LegendRowProps): JSX.Element {
  const activate = (event: MouseEvent | KeyboardEvent): void => {
    if (hasModifier(event)) props.onToggle();
    else props.onShowOnly();
  };
  return (
    <tr classList={{ off: !props.shown }}>
      <th scope="row">
        <div class="legend-key">
          <input
            type="checkbox"
            class={`series-${props.colour}`}
            checked={props.shown}
            aria-label={props.name}
            onChange={() => props.onToggle()}
          />
          <button
            class="legend-name"
            type="button"
            aria-pressed={props.isOnly}
            title={`${props.name}\nClick: show only this one. With Ctrl, Shift or ⌘: hide it.`}
            onClick={activate}
            onKeyDown={(event) => {
              // Browsers do not click for Enter with every modifier.
              if (event.key !== "Enter" || !hasModifier(event)) return;
              event.preventDefault();
              activate(event);
            }}
          >
            <bdi>{props.name}</bdi>
          </button>
          {props.children}
        </div>
      </th>
      <UsageCells sums={props.sums} />
    </tr>
  );
}

const hasModifier = ({ ctrlKey, metaKey, shiftKey, altKey }: MouseEvent | KeyboardEvent): boolean =>
  ctrlKey || metaKey || shiftKey || altKey;
