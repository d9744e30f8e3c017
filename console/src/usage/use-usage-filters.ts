import { createEffect, createMemo, createSignal, on, onCleanup } from "solid-js";
import { useUrlParameters } from "../lib/url-parameters.ts";
import type { KeySelection } from "./usage-buckets.ts";
import { isUsageMetric, type UsageMetric } from "./usage-sums.ts";
import { isUsageView, otherId, type UsageView } from "./usage-view.ts";

/** The filters of the usage page. All of them are part of the URL. */
export interface UsageFilters {
  metric: () => UsageMetric;
  view: () => UsageView;
  search: () => string;
  /** The key in the URL; undefined: all keys. */
  key: () => string | undefined;
  hiddenIds: () => ReadonlySet<number>;
  /** The keys to request. It follows the search after a moment, so that typing a word sends one request. */
  selection: () => KeySelection;
  /** Whether the period before is shown too. */
  compares: () => boolean;
  isFiltered: () => boolean;
  setMetric: (metric: UsageMetric) => void;
  setView: (view: UsageView) => void;
  setSearch: (search: string) => void;
  setHiddenIds: (ids: ReadonlySet<number>) => void;
  setCompares: (compares: boolean) => void;
  showOnly: (id: number) => void;
  showAllKeys: () => void;
  clear: () => void;
}

export function useUsageFilters(): UsageFilters {
  const [parameters, setParameters] = useUrlParameters<"metric" | "view" | "q" | "key" | "hide" | "compare">();
  const hiddenIds = createMemo(() => new Set((parameters.hide ?? "").split(",").filter(isKeyId).map(Number)));
  const search = (): string => parameters.q ?? "";
  const key = (): string | undefined => parameters.key;
  const requestedSearch = createDelayed(search, typingMs);
  const selection = createMemo<KeySelection>(() => ({
    key: key(),
    search: requestedSearch(),
    hiddenIds: [...hiddenIds()].filter((id) => id !== otherId).toSorted((a, b) => a - b),
  }));
  // Typing adds no history entries: Back leads to the previous page, not to the previous letter.
  const replace = (changed: Record<string, string | undefined>): void => setParameters(changed, { replace: true });
  return {
    metric: () => (isUsageMetric(parameters.metric) ? parameters.metric : "output"),
    view: () => (isUsageView(parameters.view) ? parameters.view : "stacked"),
    search,
    key,
    hiddenIds,
    selection,
    compares: () => parameters.compare === "1",
    isFiltered: () => search() !== "" || key() !== undefined,
    setMetric: (metric) => replace({ metric: metric === "output" ? undefined : metric }),
    setView: (view) => replace({ view: view === "stacked" ? undefined : view }),
    setSearch: (text) => replace({ q: text }),
    setHiddenIds: (ids) => replace({ hide: [...ids].toSorted((a, b) => a - b).join(",") }),
    setCompares: (compares) => replace({ compare: compares ? "1" : undefined }),
    showOnly: (id) => setParameters({ key: String(id), hide: undefined }),
    showAllKeys: () => setParameters({ key: undefined }),
    clear: () => replace({ q: undefined, key: undefined, hide: undefined }),
  };
}

const isKeyId = (text: string): boolean => /^\d{1,15}$/.test(text);

const typingMs = 200;

/** Follows a text once it has not changed for a moment; an emptied one at once. */
function createDelayed(text: () => string, delayMs: number): () => string {
  const [delayed, setDelayed] = createSignal(text());
  createEffect(
    on(
      text,
      (latest) => {
        const timer = setTimeout(() => setDelayed(latest), latest === "" ? 0 : delayMs);
        onCleanup(() => clearTimeout(timer));
      },
      { defer: true },
    ),
  );
  return delayed;
}
