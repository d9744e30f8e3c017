import { createEffect, createMemo, createSignal, type JSX, on, onCleanup, Show } from "solid-js";
import { count } from "../lib/format.ts";

const pageRows = 100;

export interface PagedList {
  hasMore: () => boolean;
  /** Adds rows to the list. */
  loadMore: () => void;
}

interface ScrollOptions {
  /** The user's choice of rows and their order, as text. Another one starts with the first rows again; a refresh does not. */
  choice?: () => string;
  /** Given for a list that is loaded in pages. */
  paged?: PagedList;
}

/** The first rows of a long list, and more on scrolling: 18,000 table rows at once take seconds to lay out. */
export function createInfiniteScroll<T>(list: () => readonly T[], { choice = () => "", paged }: ScrollOptions = {}) {
  const [limit, setLimit] = createSignal(pageRows);
  /** Whether there are rows that the list does not have yet. */
  const hasMore = (): boolean => paged?.hasMore() ?? false;
  const showMore = (): void => {
    setLimit((rows) => rows + pageRows);
    if (hasMore() && list().length < limit()) paged?.loadMore();
  };
  // A memo, because `on` also runs if the text is the same as before.
  createEffect(on(createMemo(choice), () => setLimit(pageRows), { defer: true }));
  const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting === true && showMore(), {
    rootMargin: "300px",
  });
  onCleanup(() => observer.disconnect());
  return {
    shown: (): T[] => list().slice(0, limit()),
    /** Of the rows that the list has. */
    hiddenCount: () => Math.max(0, list().length - limit()),
    hasMore,
    showMore,
    /** Shows more when the element after the last row comes near the viewport. */
    showMoreWhenSeen: (element: Element) => observer.observe(element),
  };
}

/** Below a table: how many rows are not shown, and a button for whoever does not scroll. */
export function MoreRows(props: { scroll: ReturnType<typeof createInfiniteScroll> }): JSX.Element {
  return (
    <Show when={props.scroll.hiddenCount() > 0 || props.scroll.hasMore()}>
      <p class="table-foot" ref={(element) => props.scroll.showMoreWhenSeen(element)}>
        <button class="link" type="button" onClick={() => props.scroll.showMore()}>
          Show more
        </button>
        <Show when={!props.scroll.hasMore()}> ({count(props.scroll.hiddenCount())} left)</Show>
      </p>
    </Show>
  );
}
