import { createMemo } from "solid-js";
import { matchesSearch } from "../lib/key-search.ts";
import { serverNow } from "../lib/server-clock.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { formatSort } from "../lib/sort.ts";
import type { Key } from "../queries.ts";
import { isAtLimit, isNearLimit } from "./key-limits.ts";
import { isUsable, type KeySort, parseKeySort } from "./key-list.ts";

const states = ["all", "active", "inactive", "near-limit", "at-limit", "refused"] as const;
type KeyState = (typeof states)[number];

/** Active keys are those that the overview counts, at a limit too. */
const isIn: Readonly<Record<KeyState, (key: Key) => boolean>> = {
  all: () => true,
  active: (key) => isUsable(key, serverNow()),
  inactive: (key) => !isUsable(key, serverNow()),
  "near-limit": isNearLimit,
  "at-limit": (key) => isUsable(key, serverNow()) && isAtLimit(key),
  refused: (key) => key.refused_today > 0,
};

/** Whether only keys with limits have the state. */
export const isLimitState = (state: KeyState): boolean =>
  state === "near-limit" || state === "at-limit" || state === "refused";

export type KeyFilters = ReturnType<typeof useKeyFilters>;

/** The filters and the sort of the keys page. All of them are part of the URL. */
export function useKeyFilters() {
  const [parameters, setParameters] = useUrlParameters<"q" | "state" | "sort">();
  const search = (): string => parameters.q ?? "";
  const state = (): KeyState => states.find((known) => known === parameters.state) ?? "all";
  const keySort = createMemo(() => parseKeySort(parameters.sort));
  const replace = (changed: Record<string, string | undefined>): void => setParameters(changed, { replace: true });
  return {
    search,
    state,
    keySort,
    matches: (key: Key): boolean => matchesSearch(key, search().trim().toLowerCase()) && isIn[state()](key),
    /** Whether by another than the usual. */
    isSorted: () => parameters.sort !== undefined,
    isFiltered: () => search().trim() !== "" || state() !== "all",
    setSearch: (text: string) => replace({ q: text }),
    setState: (chosen: KeyState) => replace({ state: chosen === "all" ? undefined : chosen }),
    setKeySort: (next: KeySort) => replace({ sort: formatSort(next) }),
    clear: () => replace({ q: undefined, state: undefined }),
  };
}
