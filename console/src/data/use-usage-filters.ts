import { useSearchParams } from "@solidjs/router";
import { createMemo } from "solid-js";
import { isUsageView, type UsageView } from "./usage-view.ts";
import { isUsageMetric, type UsageMetric } from "./usage-history.ts";

/** The filters of the usage page. All of them are part of the URL. */
export interface UsageFilters {
  metric: () => UsageMetric;
  view: () => UsageView;
  search: () => string;
  /** As in the URL; undefined: all keys. */
  key: () => string | undefined;
  hiddenIds: () => ReadonlySet<number>;
  /** Whether a key matches the search and the key id; a hidden key matches too. */
  matches: (id: number, name: string) => boolean;
  isFiltered: () => boolean;
  setMetric: (metric: UsageMetric) => void;
  setView: (view: UsageView) => void;
  setSearch: (search: string) => void;
  setHiddenIds: (ids: ReadonlySet<number>) => void;
  showOnly: (id: number) => void;
  showAllKeys: () => void;
  clear: () => void;
}

export function useUsageFilters(): UsageFilters {
  const [parameters, setParameters] = useSearchParams<{
    metric?: string;
    view?: string;
    q?: string;
    key?: string;
    hide?: string;
  }>();
  const hiddenIds = createMemo(() => new Set((parameters.hide ?? "").split(",").filter(Boolean).map(Number)));
  const search = (): string => parameters.q ?? "";
  const key = (): string | undefined => parameters.key;
  // Typing adds no history entries: Back leads to the previous page, not to the previous letter.
  const replace = (changed: Record<string, string | undefined>): void => setParameters(changed, { replace: true });
  return {
    metric: () => (isUsageMetric(parameters.metric) ? parameters.metric : "output"),
    view: () => (isUsageView(parameters.view) ? parameters.view : "stacked"),
    search,
    key,
    hiddenIds,
    matches: (id, name) =>
      (key() === undefined || String(id) === key()) && name.toLowerCase().includes(search().trim().toLowerCase()),
    isFiltered: () => search() !== "" || key() !== undefined,
    setMetric: (metric) => replace({ metric: metric === "output" ? undefined : metric }),
    setView: (view) => replace({ view: view === "stacked" ? undefined : view }),
    setSearch: (text) => replace({ q: text }),
    setHiddenIds: (ids) => replace({ hide: [...ids].toSorted((a, b) => a - b).join(",") }),
    showOnly: (id) => setParameters({ key: String(id), hide: undefined }),
    showAllKeys: () => setParameters({ key: undefined }),
    clear: () => replace({ q: undefined, key: undefined, hide: undefined }),
  };
}
