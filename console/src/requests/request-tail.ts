import { replaceEqualDeep } from "@tanstack/solid-query";
import { type Accessor, createEffect, createMemo, createSignal, onCleanup } from "solid-js";
import { getRequestsAfter, type LoggedRequest, pageSize, type RequestPage, type RequestQuery } from "./queries.ts";
import { mergeRequests } from "./request-list.ts";

const pollMs = 1000;
/** Within this time before the last poll, a row may have been seen before another that has a lower id. */
const lateMs = 2000;
/** More would slow the page down: then the log is read again. */
const maxArrived = 1000;

interface TailOptions {
  /** The highest id of the log when the query's first page was read. */
  lastId: number;
  isPaused: () => boolean;
  /** Reads the query's pages again, which begins a new tail. */
  readAgain: () => void;
}

/** What has ended since a query's first page was read, asked for while the browser's tab is visible. */
export function followRequests(query: RequestQuery, { lastId, isPaused, readAgain }: TailOptions) {
  const [arrived, setArrived] = createSignal<LoggedRequest[]>([]);
  const [isFailing, setFailing] = createSignal(false);
  // Each time it is said again, the log is read again, since that may fail.
  const [isBehind, setBehind] = createSignal(false, { equals: false });
  /** What is shown: while the tail is paused, new requests wait. */
  const shown = createMemo<LoggedRequest[]>((before) => (isPaused() || isBehind() ? before : arrived()), []);
  // What is seen after the first page, although its id is lower, is among these.
  const ends = [{ at: -Infinity, id: Math.max(0, lastId - pageSize) }];
  const after = (): number => ends[0]?.id ?? 0;

  function take(page: RequestPage, at: number): void {
    ends.push({ at, id: page.last_id });
    while ((ends[1]?.at ?? Infinity) <= at - lateMs) ends.shift();
    const all = mergeRequests(page.requests, arrived());
    const hasGap = page.more && page.last_id > lastId;
    // First, so that a gap is not shown.
    setBehind((was) => was || hasGap || all.length > maxArrived);
    setArrived((before) => replaceEqualDeep(before, all.slice(0, maxArrived)));
  }

  createEffect(() => {
    if (isBehind() && !isPaused()) readAgain();
  });
  const isVisible = isPageVisible();
  createEffect(() => {
    if (!isVisible()) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOver = false;
    async function poll(): Promise<void> {
      const at = performance.now();
      const page = await getRequestsAfter(query, after()).catch(() => undefined);
      if (isOver) return;
      setFailing(page === undefined);
      if (page !== undefined) take(page, at);
      timer = setTimeout(() => void poll(), pollMs);
    }
    void poll();
    onCleanup(() => {
      isOver = true;
      clearTimeout(timer);
    });
  });
  return { arrived, shown, isFailing };
}

/** Whether the page is visible, until the calling component is removed. */
function isPageVisible(): Accessor<boolean> {
  const [isVisible, setIsVisible] = createSignal(!document.hidden);
  const update = (): void => void setIsVisible(!document.hidden);
  document.addEventListener("visibilitychange", update);
  onCleanup(() => document.removeEventListener("visibilitychange", update));
  return isVisible;
}
