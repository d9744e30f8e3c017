import { createEffect, createSignal, on, onCleanup } from "solid-js";

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
