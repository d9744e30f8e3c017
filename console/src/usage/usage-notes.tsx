import { A } from "@solidjs/router";
import { type JSX, Match, Show, Switch } from "solid-js";
import { minuteMs, seoulMinute } from "../lib/seoul-time.ts";
import { dayLabel, spanLabel } from "../lib/time-labels.ts";
import type { TimeSpan } from "../lib/time-range.ts";
import { useStatesQuery, useTeamsQuery } from "../queries.ts";
import type { Group } from "./report.ts";
import { currencyOf, type ReportState } from "./use-report.ts";

/** What one has to know of the sums above. */
export function UsageNotes(props: { state: ReportState }): JSX.Element {
  const states = useStatesQuery();
  const teams = useTeamsQuery();
  const report = () => props.state.report();
  const by = (): Group | undefined => report()?.request.by;
  /** The times that lie within or after what is shown, as a day. */
  const dayAfter = (at: number | undefined, bound: "from" | "to"): string | undefined =>
    at !== undefined && at > (report()?.span[bound] ?? at) ? dayLabel(at) : undefined;
  const firstTeamAt = (): number | undefined => {
    const times = teams.data?.map((team) => Date.parse(team.created_at)) ?? [];
    const tellsTeams = by() === "team" || report()?.request.filter.team !== undefined;
    return tellsTeams && times.length > 0 ? Math.min(...times) : undefined;
  };
  const isWider = (): boolean => {
    const { request, span } = report() ?? {};
    const zoom = request?.range.zoom;
    return zoom !== undefined && span !== undefined && (span.from < zoom.from || span.to - zoom.to >= minuteMs);
  };
  const isProvisional = (): boolean =>
    states.data?.states.some(({ kind }) => kind === "counts_waiting" || kind === "database_away") ?? false;
  return (
    <p class="footnote">
      Input includes what came from a cache, as far as backends report it.{" "}
      <Show when={isProvisional()}>
        <b>Provisional</b>: counts wait to be written.{" "}
      </Show>
      <Show when={report()?.before}>{(before) => <>Change is against {wholeSpanLabel(before().span)}. </>}</Show>
      <Show when={currencyOf(report()) && dayAfter(Date.parse(report()?.prices_changed_at ?? ""), "to")}>
        {(day) => <>Prices changed on {day()}. </>}
      </Show>
      <Show when={dayAfter(firstTeamAt(), "from")}>
        {(day) => <>Teams are counted since {day()}; before that, group by tag or owner. </>}
      </Show>
      <Show when={isWider()}>By whole hours, {spanLabel(report()?.span.from ?? 0, report()?.span.to ?? 0)}. </Show>
      <Switch>
        <Match when={by() === "tag"}>A key with several tags is in the row of each: the rows add up to more. </Match>
        <Match when={report()?.logFrom !== undefined}>
          By the request log
          <Show when={dayAfter(report()?.logFrom, "from")}>{(day) => <>, which is kept since {day()}</>}</Show>.{" "}
        </Match>
      </Switch>
      <Show when={report()?.currency === null}>
        <A href="/settings/prices">Enter prices</A> to see costs.
      </Show>
    </p>
  );
}

/** Whole days by their names. */
function wholeSpanLabel({ from, to }: TimeSpan): string {
  const isDay = (at: number): boolean => seoulMinute(at).endsWith("T00:00");
  if (!isDay(from)) return spanLabel(from, to);
  const last = dayLabel(to - 1);
  const days = dayLabel(from) === last ? last : `${dayLabel(from)} to ${last}`;
  return isDay(to) ? days : `${days}, ${seoulMinute(to).slice(11)} KST`;
}
