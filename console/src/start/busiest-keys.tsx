import { A } from "@solidjs/router";
import { For, type JSX, Show } from "solid-js";
import { compact, count } from "../lib/format.ts";
import { EmptyState } from "../ui/panel.tsx";
import { SkeletonList } from "../ui/skeleton.tsx";
import type { RankedKey } from "../usage/key-ranking.ts";
import type { GroupId } from "../usage/usage-buckets.ts";

export const maxRows = 6;

/**
 * @param props.ranked undefined while it loads
 * @param props.keyCount with those that are not ranked
 */
export function BusiestKeys(props: { ranked: readonly RankedKey[] | undefined; keyCount: number }): JSX.Element {
  const highest = (): number => props.ranked?.[0]?.total ?? 0;
  // Rows are keyed by id, as in the legend of the usage page.
  const ids = (): GroupId[] => (props.ranked ?? []).slice(0, maxRows).map(({ key }) => key.id);
  const find = (id: GroupId): RankedKey | undefined => props.ranked?.find(({ key }) => key.id === id);
  const moreCount = (): number => Math.max(0, props.keyCount - maxRows);
  return (
    <Show when={props.ranked} fallback={<SkeletonList />}>
      <ol class="list">
        <For
          each={ids()}
          fallback={
            <li>
              <EmptyState title="No requests in the last 24 hours" />
            </li>
          }
        >
          {(id) => <Show when={find(id)}>{(ranked) => <KeyItem ranked={ranked()} highest={highest()} />}</Show>}
        </For>
        <Show when={moreCount() > 0}>
          <li class="faint">
            <A href="/usage">and {count(moreCount())} more</A>
          </li>
        </Show>
      </ol>
    </Show>
  );
}

function KeyItem(props: { ranked: RankedKey; highest: number }): JSX.Element {
  const share = (): number => (props.highest === 0 ? 0 : props.ranked.total / props.highest);
  return (
    <li>
      <A href={`/usage?key=${props.ranked.key.id}`} class="name" title={props.ranked.key.name}>
        <span class={`swatch series-${props.ranked.colour}`} />
        <bdi>{props.ranked.key.name}</bdi>
      </A>
      <span class="value">{compact(props.ranked.total)}</span>
      <span class={`share series-${props.ranked.colour}`} style={{ "--share": share() }} />
    </li>
  );
}
