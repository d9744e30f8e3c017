import { createEffect, createMemo, For, type JSX, Show } from "solid-js";
import { type UsageSums, sumsIn } from "../data/usage-history.ts";
import type { RankedKey } from "../data/key-ranking.ts";
import type { TimeSpan } from "../data/time-range.ts";
import { saveCount, savedCount } from "../data/browser-settings.ts";
import { createInfiniteScroll, MoreRows } from "./infinite-scroll.tsx";
import { SkeletonRows } from "./page.tsx";
import { UsageCells } from "./usage-cells.tsx";

interface UsageLegendProps {
  ranked: readonly RankedKey[];
  hiddenIds: ReadonlySet<number>;
  span: TimeSpan;
  loading: boolean;
  onHide: (ids: ReadonlySet<number>) => void;
}

/** More of them scroll. */
const visibleRows = 8;

/** The chart's keys with their sums; each can be taken out of the chart, the figures and the CSV. */
export function UsageLegend(props: UsageLegendProps): JSX.Element {
  const byId = createMemo(() => new Map(props.ranked.map((ranked) => [ranked.key.id, ranked])));
  // Rows go by id: a refresh brings new objects, and rows made anew would take the focus away.
  const scroll = createInfiniteScroll(() => props.ranked.map(({ key }) => key.id));
  createEffect(() => props.ranked.length > 0 && saveCount("legend", props.ranked.length));
  const toggle = (id: number): void => {
    const ids = new Set(props.hiddenIds);
    if (!ids.delete(id)) ids.add(id);
    props.onHide(ids);
  };
  return (
    <Show when={props.loading || props.ranked.length > 0}>
      <div class="table-scroll legend">
        <table class="cards-on-phone">
          <caption class="visually-hidden">Keys in the chart</caption>
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col" class="number">
                Requests
              </th>
              <th scope="col" class="number">
                Input
              </th>
              <th scope="col" class="number">
                Output
              </th>
            </tr>
          </thead>
          <tbody>
            <Show when={props.loading && props.ranked.length === 0}>
              <SkeletonRows columns={4} rows={Math.min(visibleRows, savedCount("legend", visibleRows))} />
            </Show>
            <For each={scroll.shown()}>
              {(id) => (
                <Show when={byId().get(id)}>
                  {(ranked) => (
                    <LegendRow
                      ranked={ranked()}
                      shown={!props.hiddenIds.has(id)}
                      sums={sumsIn(ranked().key, props.span)}
                      onToggle={() => toggle(id)}
                    />
                  )}
                </Show>
              )}
            </For>
          </tbody>
        </table>
        <MoreRows scroll={scroll} />
      </div>
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
