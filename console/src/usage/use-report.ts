import { createMemo } from "solid-js";
import { sameRequest } from "../lib/series.ts";
import { useHasUsers, useTeamsQuery } from "../queries.ts";
import { type Group, groups, isFilterName } from "./report.ts";
import { type Report, type ReportRequest, useReportQuery } from "./report-queries.ts";
import type { UsageFilter } from "./usage-filters.ts";

interface Chosen extends Omit<ReportRequest, "by"> {
  /** What the URL says. */
  by: string | undefined;
}

const isPossible = (group: Group, filter: UsageFilter): boolean => {
  if (group === "key_model") return filter.key === undefined && filter.model === undefined;
  // The request log knows neither tags nor owners.
  if (group === "client") return filter.tag === undefined && filter.owner === undefined;
  return !isFilterName(group) || filter[group] === undefined;
};

/** By which it is grouped before somebody chooses. */
const firstGroups: ReadonlySet<Group> = new Set(["team", "key", "model", "day"]);

export type ReportState = ReturnType<typeof useReport>;

/**
 * The table of usage over a range, and the period before it.
 * @param among what may be grouped by; the first that is possible, unless the URL says another
 */
export function useReport(chosen: () => Chosen, among: readonly Group[] = Object.keys(groups) as Group[]) {
  const teams = useTeamsQuery();
  const hasUsers = useHasUsers();
  /** Whether it is known what it is grouped by. */
  const isReady = (): boolean => teams.data !== undefined || teams.isError;
  const hasTeams = (): boolean => (teams.data?.length ?? 0) > 0;
  const possible = (): Group[] => among.filter((group) => isPossible(group, chosen().filter));
  const request = createMemo(
    (): ReportRequest => {
      const { range, filter, by } = chosen();
      const first = possible().find((group) => firstGroups.has(group) && (group !== "team" || hasTeams()));
      return { range, filter, by: possible().find((group) => group === by) ?? first ?? "day" };
    },
    undefined,
    { equals: sameRequest },
  );
  const query = useReportQuery(request, isReady);
  const hasRows = (group: Group): boolean => {
    if (group === request().by) return true;
    if (group === "team") return hasTeams();
    if (group === "user") return hasUsers();
    return (group !== "tag" && group !== "owner") || (query.data?.labels.includes(group) ?? false);
  };
  return {
    query,
    request,
    isReady,
    /** Undefined while it loads. */
    report: (): Report | undefined => query.data,
    /** The groups that have rows. */
    offered: () => possible().filter(hasRows),
  };
}

/** Undefined without prices, and of models without one: there is nothing to show. */
export const currencyOf = (report: Report | undefined): string | undefined =>
  report === undefined || report.total.cost === null ? undefined : (report.currency ?? undefined);
