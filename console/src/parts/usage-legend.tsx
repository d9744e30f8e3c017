import { createEffect, createMemo, For, type JSX, Show } from "solid-js";
import { saveCount, savedCount } from "../data/browser-settings.ts";
import { count } from "../data/format.ts";
import type { RankedKey } from "../data/key-ranking.ts";
import type { UsageSums } from "../data/usage-history.ts";
import { createInfiniteScroll, MoreRows } from "./infinite-scroll.tsx";
import { SkeletonRows } from "./skeleton.tsx";
import { UsageCells } from "./usage-cells.tsx";

interface UsageLegendProps {
  ranked: readonly RankedKey[];
  hiddenIds: ReadonlySet<number>;
  /** With the keys that are not listed. */
  keyCount: number;
  loading: boolean;
  onHide: (ids: ReadonlySet<number>) => void;
}

/** The legend scrolls if it has more rows. */
const visibleRows = 8;

/** The keys of the chart with their sums. A key can be hidden from the chart, the figures and the CSV. */
export function UsageLegend(props: UsageLegendProps): JSX.Element {
  const scroll = createInfiniteScroll(() => props.ranked.map(({ key }) => key.id));
  createEffect(() => props.ranked.length > 0 && saveCount("legend", props.ranked.length));
  return (
    <Show when={props.loading || props.ranked.length > 0}>
      <div class="table-scroll legend">
        <table class="cards-on-phone">
          <caption class="visually-hidden">Keys in the chart</caption>
          <LegendHead />
          <tbody>
            <Show when={props.loading && props.ranked.length === 0}>
              <SkeletonRows columns={4} rows={Math.min(visibleRows, savedCount("legend", visibleRows))} />
            </Show>
            <LegendRows {...props} ids={scroll.shown()} />
          </tbody>
        </table>
        <MoreRows scroll={scroll} />
      </div>
      <Show when={props.keyCount > props.ranked.length}>
        <p class="table-foot">{count(props.keyCount - props.ranked.length)} more keys with less usage.</p>
      </Show>
      <Show when={props.hiddenIds.size > 0}>
        <p class="table-foot">
          {props.hiddenIds.size} hidden.{" "}
          <button class="link" type="button" onClick={() => props.onHide(new Set())}>
            Show all
          </button>
        </p>
      </Show>
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

/** Rows are keyed by id: each refresh creates new objects, and replaced rows would lose the focus. */
function LegendRows(props: UsageLegendProps & { ids: readonly number[] }): JSX.Element {
  const byId = createMemo(() => new Map(props.ranked.map((ranked) => [ranked.key.id, ranked])));
  const toggle = (id: number): void => {
    const ids = new Set(props.hiddenIds);
    if (!ids.delete(id)) ids.add(id);
    props.onHide(ids);
  };
  return (
    <For each={props.ids}>
      {(id) => (
        <Show when={byId().get(id)}>
          {(ranked) => (
            <LegendRow
              ranked={ranked()}
              shown={!props.hiddenIds.has(id)}
              sums={ranked().key.sums}
              onToggle={() => toggle(id)}
            />
          )}
        </Show>
      )}
    </For>
  );
}

interface LegendRowProps {
  ranked: RankedKey;
  shown: boolean;
  sums: UsageSums;
  onToggle: () => void;
}

function LegendRow(props: LegendRowProps): JSX.Element {
  return (
    <tr classList={{ off: !props.shown }}>
      <th scope="row">
        <label class="legend-key">
          <input
            type="checkbox"
            class={`series-${props.ranked.colour}`}
            checked={props.shown}
            onChange={() => props.onToggle()}
          />
          <span>{props.ranked.key.name}</span>
        </label>
      </th>
      <UsageCells sums={props.sums} />
    </tr>
  );
}
