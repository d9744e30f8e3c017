import { createSignal, type JSX } from "solid-js";
import type { TimeSpan } from "../lib/time-range.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { SegmentedControl } from "../ui/controls.tsx";
import type { Group } from "./report.ts";
import { rangeOf } from "./report-queries.ts";
import { allUsage, type UsageFilter } from "./usage-filters.ts";
import { UsageTable } from "./usage-table.tsx";
import { useReport } from "./use-report.ts";

/** Who used what in a span, such as one that is selected in a chart of power. */
export function UsageIn(props: { span: TimeSpan }): JSX.Element {
  const [by, setBy] = createSignal<Group>("key");
  const state = useReport(
    () => ({ range: { preset: "24h", zoom: props.span }, filter: allUsage, by: by() }),
    ["key", "user", "team", "model", "client"],
  );
  return <UsageTable state={state} onGroup={setBy} />;
}

const dayOptions = (["today", "7d", "30d", "90d", "365d"] as const).map((value) => ({
  value,
  label: value === "today" ? "Today" : value.replace("d", " d"),
}));

/** The table of one key or team, with its own range. */
export function UsageOf(props: { filter: UsageFilter }): JSX.Element {
  const [parameters, setParameters] = useUrlParameters<"by" | "span">();
  const preset = () => dayOptions.find(({ value }) => value === parameters.span)?.value ?? "30d";
  const state = useReport(
    () => ({ range: rangeOf(preset()), filter: props.filter, by: parameters.by }),
    ["model", "key", "key_model", "user", "day"],
  );
  const set = (changed: Record<string, string | undefined>): void => setParameters(changed, { replace: true });
  return (
    <UsageTable
      state={state}
      onGroup={(by) => set({ by })}
      actions={
        <SegmentedControl
          label="Days of usage"
          options={dayOptions}
          value={preset()}
          onChange={(span) => set({ span: span === "30d" ? undefined : span })}
        />
      }
    />
  );
}
