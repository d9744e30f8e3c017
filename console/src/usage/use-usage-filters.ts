import { createMemo } from "solid-js";
import { sameRequest } from "../lib/series.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { type FilterName, filterNames, type UsageFilter } from "./usage-filters.ts";
import { isUsageMetric, type UsageMetric } from "./usage-sums.ts";
import { isUsageView, type UsageView } from "./usage-view.ts";

/** What the bar of the usage page chooses beside the range. All of it is part of the URL. */
export interface UsageFilters {
  filter: () => UsageFilter;
  metric: () => UsageMetric;
  view: () => UsageView;
  /** As in the URL. */
  by: () => string | undefined;
  setMetric: (metric: UsageMetric) => void;
  setView: (view: UsageView) => void;
  setBy: (by: string) => void;
  /** Adds a history entry, so that Back leads to what was shown before. */
  set: (name: FilterName, value: string | undefined) => void;
  clear: () => void;
}

export function useUsageFilters(): UsageFilters {
  const [parameters, setParameters] = useUrlParameters<FilterName | "metric" | "view" | "by">();
  const filter = createMemo(
    (): UsageFilter =>
      Object.fromEntries(filterNames.flatMap((name) => (parameters[name] ? [[name, parameters[name]]] : []))),
    undefined,
    { equals: sameRequest },
  );
  const replace = (changed: Record<string, string | undefined>): void => setParameters(changed, { replace: true });
  return {
    filter,
    metric: () => (isUsageMetric(parameters.metric) ? parameters.metric : "output"),
    view: () => (isUsageView(parameters.view) ? parameters.view : "stacked"),
    by: () => parameters.by,
    setMetric: (metric) => replace({ metric: metric === "output" ? undefined : metric }),
    setView: (view) => replace({ view: view === "stacked" ? undefined : view }),
    setBy: (by) => replace({ by }),
    // Rows of one key by key would be one row.
    set: (name, value) => setParameters({ [name]: value, by: undefined }),
    clear: () => replace(Object.fromEntries(filterNames.map((name) => [name, undefined]))),
  };
}
