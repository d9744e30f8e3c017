import { createEffect, createMemo, createSignal, on } from "solid-js";
import { getRequests, type LoggedRequest, pageSize, type RequestPage, useRequestPages } from "./queries.ts";
import { streamAddress } from "./request-filters.ts";
import { keepObjects, mergeRequests } from "./request-list.ts";
import { createRequestTail, type TailState } from "./request-tail.ts";
import type { RequestFilters } from "./use-request-filters.ts";

export interface RequestLog {
  query: ReturnType<typeof useRequestPages>;
  /** Newest first; undefined until the first response. */
  rows: () => LoggedRequest[] | undefined;
  /** How far back the search has looked, if there may be more. */
  searchedBackTo: () => string | undefined;
  hasMore: () => boolean;
  loadMore: () => void;
  /** How much the server keeps; undefined until the first response. */
  limits: () => RequestPage["log"] | undefined;
  /** Why no new requests are added: by the button, or because they would move what is being read. */
  pause: () => "asked" | "reading" | undefined;
  setPaused: (paused: boolean) => void;
  setReading: (reading: boolean) => void;
  tail: () => TailState;
  /** How many requests have ended since the pause, or were too many to be sent. */
  waitingCount: () => number;
  skippedCount: () => number;
}

/** More would slow the page down: then the log is read again. */
const maxArrived = 1000;

/** The request log with its live tail. */
export function useRequestLog(filters: RequestFilters): RequestLog {
  const [shownCount, setShownCount] = createSignal(pageSize);
  const query = useRequestPages(() => ({ ...filters.query(), ...filters.timeQuery() }));
  const pages = (): readonly RequestPage[] => query.data?.pages ?? [];
  const limits = (): RequestPage["log"] | undefined => pages()[0]?.log;
  const isGrouped = (): boolean => filters.grouping() !== undefined;
  const isOn = (): boolean =>
    limits() !== undefined && limits()?.days !== 0 && filters.value("until") === "" && !isGrouped();
  const tail = useArrived(filters, { isOn, listed: () => merged(), refetch: () => void query.refetch() });
  createEffect(
    on([filters.query, filters.timeQuery], () => {
      tail.forget();
      setShownCount(pageSize);
    }),
  );
  const merged = createMemo<LoggedRequest[]>(
    (before) => keepObjects(before, mergeRequests(tail.shown(), ...pages().map(({ requests }) => requests))),
    [],
  );
  const rows = createMemo(() => (query.data === undefined ? undefined : merged().slice(0, shownCount())));
  const hidden = (): number => merged().length - shownCount();
  return {
    ...tail,
    query,
    rows,
    searchedBackTo: () => (query.hasNextPage ? (pages().at(-1)?.scanned_to ?? undefined) : undefined),
    hasMore: () => hidden() > 0 || query.hasNextPage,
    loadMore() {
      setShownCount((count) => count + pageSize);
      if (hidden() <= 0 && query.hasNextPage && !query.isFetching) void query.fetchNextPage();
    },
    limits,
  };
}

interface ArrivedOptions {
  isOn: () => boolean;
  /** What the table has, from the log and the tail. */
  listed: () => readonly LoggedRequest[];
  refetch: () => void;
}

/** The requests from the live tail. While it is paused, new requests wait. */
function useArrived(filters: RequestFilters, { isOn, listed, refetch }: ArrivedOptions) {
  const [shown, setShown] = createSignal<LoggedRequest[]>([]);
  const [waiting, setWaiting] = createSignal<LoggedRequest[]>([]);
  const [skippedCount, setSkippedCount] = createSignal(0);
  const [isAsked, setPaused] = createSignal(false);
  const [isReading, setReading] = createSignal(false);
  const pause = (): "asked" | "reading" | undefined => (isAsked() ? "asked" : isReading() ? "reading" : undefined);
  const isPaused = createMemo(() => pause() !== undefined);
  /** Whether the log is to be read again after the pause. */
  let isBehind = false;
  const forget = (): void => {
    isBehind = false;
    setShown([]);
    setWaiting([]);
    setSkippedCount(0);
  };
  // The pages that are read next need not reach back to what has arrived: together they would hide what is between them.
  const readAgain = (): void => {
    if (isPaused()) {
      isBehind = true;
      return;
    }
    forget();
    refetch();
  };
  const add = (requests: readonly LoggedRequest[]): void => {
    const set = isPaused() ? setWaiting : setShown;
    set((before) => mergeRequests(requests, before));
    if (shown().length + waiting().length <= maxArrived) return;
    if (isPaused()) {
      setWaiting((all) => all.slice(0, maxArrived));
      return;
    }
    readAgain();
  };
  const goOn = (): void => {
    if (isBehind) {
      readAgain();
      return;
    }
    const late = waiting();
    setWaiting([]);
    add(late);
  };
  createEffect(on(isPaused, (paused) => !paused && goOn(), { defer: true }));
  const tail = createRequestTail<LoggedRequest>({
    address: () => (isOn() ? streamAddress(filters.query()) : undefined),
    onOpen: () => void catchUp(filters, idsOf([...listed(), ...waiting()]), add, readAgain),
    onRequests: add,
    onSkipped: (count) => setSkippedCount((before) => before + count),
  });
  return {
    shown,
    forget,
    tail,
    pause,
    // The page that the tail continues has requests that the table has too.
    waitingCount: () => {
      const known = idsOf(listed());
      return waiting().filter(({ id }) => !known.has(id)).length;
    },
    skippedCount,
    setPaused,
    setReading,
  };
}

const idsOf = (requests: readonly LoggedRequest[]): Set<number> => new Set(requests.map(({ id }) => id));

/**
 * Adds what ended before the tail was connected; all is read again if that is more than one page, or cannot be read.
 * @param held the ids of the requests before the connection
 */
async function catchUp(
  filters: RequestFilters,
  held: ReadonlySet<number>,
  add: (requests: LoggedRequest[]) => void,
  readAgain: () => void,
): Promise<void> {
  const asked = filters.query();
  // The page's own query reports why.
  const page = await getRequests({ ...asked, ...filters.timeQuery() }).catch(() => undefined);
  if (asked !== filters.query()) return;
  if (page !== undefined && (page.next_cursor === null || page.requests.some(({ id }) => held.has(id))))
    add(page.requests);
  else readAgain();
}
