import { createEffect, createMemo, For, type JSX, Show } from "solid-js";
import { type Sums, sumsIn } from "../data/usage-history.ts";
import type { RankedKey } from "../data/key-ranking.ts";
import type { Span } from "../data/time-range.ts";
import { rememberCount, rememberedCount } from "../data/browser-settings.ts";
import { createGrowingSlice, MoreRows } from "./infinite-scroll.tsx";
import { SkeletonRows } from "./page.tsx";
import { SumCells } from "./usage-cells.tsx";

interface UsageLegendProps {
  ranked: readonly RankedKey[];
  hidden: ReadonlySet<number>;
  span: Span;
  loading: boolean;
  onHide: (ids: ReadonlySet<number>) => void;
}

/** More of them scroll. */
const visibleRows = 8;

/** The chart's keys with their sums; each can be taken out of the chart, the figures and the CSV. */
export function UsageLegend(props: UsageLegendProps): JSX.Element {
  const byId = createMemo(() => new Map(props.ranked.map((one) => [one.key.id, one])));
  // Rows go by id: a refresh brings new objects, and rows made anew would take the focus away.
  const slice = createGrowingSlice(() => props.ranked.map(({ key }) => key.id));
  createEffect(() => props.ranked.length > 0 && rememberCount("legend", props.ranked.length));
  const toggle = (id: number): void => {
    const ids = new Set(props.hidden);
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
              <SkeletonRows columns={4} rows={Math.min(visibleRows, rememberedCount("legend", visibleRows))} />
            </Show>
            <For each={slice.shown()}>
              {(id) => (
                <Show when={byId().get(id)}>
                  {(one) => (
                    <LegendRow
                      one={one()}
                      shown={!props.hidden.has(id)}
                      sums={sumsIn(one().key, props.span)}
                      onToggle={() => toggle(id)}
                    />
                  )}
                </Show>
              )}
            </For>
          </tbody>
        </table>
        <MoreRows slice={slice} />
      </div>
      <Show when={props.hidden.size > 0}>
        <p class="table-foot">
          {props.hidden.size} hidden.{" "}
          <button class="link" type="button" onClick={() => props.onHide(new Set())}>
            Show all
          </button>
        </p>
      </Show>
    </Show>
  );
}

interface LegendRowProps {
  one: RankedKey;
  shown: boolean;
  sums: Sums;
  onToggle: () => void;
}

function LegendRow(props: LegendRowProps): JSX.Element {
  return (
    <tr classList={{ off: !props.shown }}>
      <th scope="row">
        <label class="legend-key">
          <input
            type="checkbox"
            class={`series-${props.one.colour}`}
            checked={props.shown}
            onChange={() => props.onToggle()}
          />
          <span>{props.one.key.name}</span>
        </label>
      </th>
      <SumCells sums={props.sums} />
    </tr>
  );
}
