import { createEffect, createSignal, type JSX, on, onCleanup, Show } from "solid-js";
import { count } from "../data/format.ts";

const stepRows = 100;

export interface GrowingSlice<T> {
  shown: () => T[];
  rest: () => number;
  grow: () => void;
  /** For the element after the last row: coming near it shows more. */
  growWhenSeen: (element: Element) => void;
}

/** The first rows of a long list, and more as the reader gets there: 18,000 table rows at once take seconds to lay out. */
export function createGrowingSlice<T>(list: () => T[]): GrowingSlice<T> {
  const [limit, setLimit] = createSignal(stepRows);
  const grow = (): void => void setLimit((rows) => rows + stepRows);
  createEffect(
    on(
      () => list().length,
      () => setLimit(stepRows),
      { defer: true },
    ),
  );
  const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting === true && grow(), {
    rootMargin: "300px",
  });
  onCleanup(() => observer.disconnect());
  return {
    shown: () => list().slice(0, limit()),
    rest: () => Math.max(0, list().length - limit()),
    grow,
    growWhenSeen: (element) => observer.observe(element),
  };
}

/** Below a table: how many rows are left, and the way to them for who does not scroll. */
export function MoreRows(props: { slice: GrowingSlice<unknown> }): JSX.Element {
  return (
    <Show when={props.slice.rest() > 0}>
      <p class="table-foot" ref={(element) => props.slice.growWhenSeen(element)}>
        <button class="link" type="button" onClick={() => props.slice.grow()}>
          Show more
        </button>{" "}
        ({count(props.slice.rest())} left)
      </p>
    </Show>
  );
}
