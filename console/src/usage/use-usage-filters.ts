import { createMemo } from "solid-js";
import { sameRequest } from "../lib/series.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { type FilterName, filterNames, type UsageFilter } from "./usage-filters.ts";
import { isUsageMetric, type UsageMetric } from "./usage-sums.ts";
import { isUsageView, type UsageView } from "./usage-view.ts";

export type UsageFilters = ReturnType<typeof useUsageFilters>;

/** What the bar of the usage page chooses beside the range. All of it is part of the URL. */
export function useUsageFilters() {
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
    metric: (): UsageMetric => (isUsageMetric(parameters.metric) ? parameters.metric : "output"),
    view: (): UsageView => (isUsageView(parameters.view) ? parameters.view : "stacked"),
    /** As in the URL. */
    by: () => parameters.by,
    setMetric: (metric: UsageMetric) => replace({ metric: metric === "output" ? undefined : metric }),
    setView: (view: UsageView) => replace({ view: view === "stacked" ? undefined : view }),
    setBy: (by: string) => replace({ by }),
    /** Adds a history entry, so that Back leads to what was shown before. Rows of one key by key would be one row. */
    set: (name: FilterName, value: string | undefined) => setParameters({ [name]: value, by: undefined }),
    clear: () => replace(Object.fromEntries(filterNames.map((name) => [name, undefined]))),
  };
}
