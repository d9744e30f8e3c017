import { useSearchParams } from "@solidjs/router";
import { createMemo } from "solid-js";
import { matchesSearch } from "./key-search.ts";
import { formatKeySort, type KeySort, parseKeySort } from "./key-sort.ts";
import type { Key } from "./queries.ts";

const states = ["all", "active", "inactive"] as const;
export type KeyState = (typeof states)[number];

/** The filters and the sort of the keys page. All of them are part of the URL. */
export interface KeyFilters {
  search: () => string;
  state: () => KeyState;
  keySort: () => KeySort;
  matches: (key: Key) => boolean;
  isFiltered: () => boolean;
  setSearch: (search: string) => void;
  setState: (state: KeyState) => void;
  setKeySort: (sort: KeySort) => void;
  clear: () => void;
}

export function useKeyFilters(): KeyFilters {
  const [parameters, setParameters] = useSearchParams<{ q?: string; state?: string; sort?: string }>();
  const search = (): string => parameters.q ?? "";
  const state = (): KeyState => states.find((known) => known === parameters.state) ?? "all";
  const keySort = createMemo(() => parseKeySort(parameters.sort));
  const replace = (changed: Record<string, string | undefined>): void => setParameters(changed, { replace: true });
  return {
    search,
    state,
    keySort,
    matches: (key) =>
      matchesSearch(key, search().trim().toLowerCase()) &&
      (state() === "all" || key.is_active === (state() === "active")),
    isFiltered: () => search().trim() !== "" || state() !== "all",
    setSearch: (text) => replace({ q: text }),
    setState: (chosen) => replace({ state: chosen === "all" ? undefined : chosen }),
    setKeySort: (next) => replace({ sort: formatKeySort(next) }),
    clear: () => replace({ q: undefined, state: undefined }),
  };
}
