import { createEffect, createMemo, createSignal, on } from "solid-js";
import { unwrap } from "solid-js/store";
import { type LoggedRequest, pageSize, type RequestPage, type RequestQuery, useRequestPages } from "./queries.ts";
import { keepObjects, mergeRequests } from "./request-list.ts";
import { followRequests } from "./request-tail.ts";
import type { RequestFilters } from "./use-request-filters.ts";

export type RequestLog = ReturnType<typeof useRequestLog>;

/** The request log with its live tail. */
export function useRequestLog(filters: RequestFilters) {
  const [shownCount, setShownCount] = createSignal(pageSize);
  const [isAsked, setPaused] = createSignal(false);
  const [isReading, setReading] = createSignal(false);
  /** Why no new requests are added: by the button, or because they would move what is being read. */
  const pause = (): "asked" | "reading" | undefined => (isAsked() ? "asked" : isReading() ? "reading" : undefined);
  const isPaused = createMemo(() => pause() !== undefined);
  const asked = createMemo((): RequestQuery => ({ ...filters.query(), ...filters.timeQuery() }));
  const query = useRequestPages(asked);
  const pages = (): readonly RequestPage[] => unwrap(query.data)?.pages ?? [];
  /** How much the server keeps; undefined until the first response. */
  const limits = (): RequestPage["log"] | undefined => pages()[0]?.log;
  const isOn = (): boolean => limits()?.days !== 0 && filters.value("until") === "" && filters.grouping() === undefined;
  const lastId = createMemo(() => (isOn() ? pages()[0]?.last_id : undefined));
  // Each first page has a tail of its own.
  const tail = createMemo(() => {
    const [of, from] = [asked(), lastId()];
    const readAgain = (): void => void query.refetch({ cancelRefetch: false });
    return from === undefined ? undefined : followRequests(of, { lastId: from, isPaused, readAgain });
  });
  createEffect(on(asked, () => setShownCount(pageSize)));
  const merged = createMemo<LoggedRequest[]>(
    (before) => keepObjects(before, mergeRequests(tail()?.shown() ?? [], ...pages().map(({ requests }) => requests))),
    [],
  );
  /** Newest first; undefined until the first response. */
  const rows = createMemo(() => (query.data === undefined ? undefined : merged().slice(0, shownCount())));
  const hidden = (): number => merged().length - shownCount();
  return {
    query,
    rows,
    /** How far back the search has looked, if there may be more. */
    searchedBackTo: () => (query.hasNextPage ? (pages().at(-1)?.scanned_to ?? undefined) : undefined),
    hasMore: () => hidden() > 0 || query.hasNextPage,
    loadMore(): void {
      setShownCount((count) => count + pageSize);
      if (hidden() <= 0 && query.hasNextPage && !query.isFetching) void query.fetchNextPage();
    },
    limits,
    pause,
    setPaused,
    setReading,
    isFailing: () => tail()?.isFailing() ?? false,
    /** How many requests have ended since the pause, as far as they are known. */
    waitingCount(): number {
      const listed = new Set(merged().map(({ id }) => id));
      return (tail()?.arrived() ?? []).filter(({ id }) => !listed.has(id)).length;
    },
  };
}
