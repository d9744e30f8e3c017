import { useQuery } from "@tanstack/solid-query";
import { api, responseBody } from "../client.ts";
import { ceilToStep, dayMs, floorToStep, hourMs, seoulTimestamp } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { chosenSpan, maxDays, type RangePreset, spanBefore, type TimeRange, type TimeSpan } from "../lib/time-range.ts";
import { keepPreviousData, type QueryResult, refetchSoonerAfterError } from "../queries.ts";
import {
  type Group,
  isLogGroup,
  loggedRow,
  logGroups,
  mostFirst,
  noUsage,
  type ReportRow,
  reportRow,
  type Sums,
} from "./report.ts";
import { filterParameters, type UsageFilter } from "./usage-filters.ts";

/** What is asked for. It stays the same while time passes. */
export interface ReportRequest {
  range: TimeRange;
  filter: UsageFilter;
  by: Group;
}

export interface CostsRequest extends ReportRequest {
  by: Exclude<Group, "client">;
}

export const rangeOf = (preset: RangePreset): TimeRange => ({ preset, zoom: undefined });

/** The API's most for one page. */
const maxPageSize = 2000;

const fetchCosts = ({ by, filter }: CostsRequest, { from, to }: TimeSpan, cursor: string | undefined) =>
  responseBody(
    api.usage.costs.get({
      query: {
        since: seoulTimestamp(from),
        until: seoulTimestamp(to),
        by,
        ...filterParameters(filter),
        limit: maxPageSize,
        ...(cursor !== undefined && { cursor }),
      },
    }),
  );
type CostsPage = Awaited<ReturnType<typeof fetchCosts>>;
export type CostRow = CostsPage["rows"][number];
/** Whole hours, the last of which may go on; whole days where that changes nothing. */
function spanOf({ range }: ReportRequest, now: number): TimeSpan {
  const { from, to } = chosenSpan(range, now, maxDays);
  return { from: floorToStep(from, hourMs), to: ceilToStep(to, to === now ? dayMs : hourMs) };
}

/** The same elapsed time of the period before; the hour that goes on has not its like. Undefined if it is not kept. */
function spanBeforeOf({ range }: ReportRequest, now: number): TimeSpan | undefined {
  const { from, to } = chosenSpan(range, now, maxDays);
  const elapsed = { from: floorToStep(from, hourMs), to: floorToStep(to, hourMs) };
  const span = spanBefore(range, elapsed, { now, bucketMinutes: 60 });
  return span !== undefined && span.from < span.to ? span : undefined;
}

/** All pages. */
async function getCosts(request: CostsRequest, span = spanOf(request, serverNow())) {
  const first = await fetchCosts(request, span, undefined);
  const rows = [...first.rows];
  for (let { next_cursor: cursor } = first; cursor !== null;) {
    const page = await fetchCosts(request, span, cursor);
    rows.push(...page.rows);
    cursor = page.next_cursor;
  }
  return { ...first, rows, request, fetchedAt: serverNow() };
}

export const useCostsQuery = (
  request: () => CostsRequest,
  { enabled = () => true, everyMs = 60_000 }: { enabled?: () => boolean; everyMs?: number } = {},
): QueryResult<typeof getCosts> =>
  useQuery(() => ({
    queryKey: ["usage", "costs", request()],
    queryFn: () => getCosts(request()),
    enabled: enabled(),
    refetchInterval: refetchSoonerAfterError(everyMs),
    placeholderData: keepPreviousData,
  }));

/** The sums of one period. */
interface Period {
  rows: ReportRow[];
  /** Of all rows together, whose tags overlap. */
  total: Sums;
  currency: string | null;
  /** Of what it is filtered by. */
  names: Partial<Record<"key" | "team" | "user", string | null>>;
  /** The labels that keys have. */
  labels: readonly string[];
  prices_changed_at: string | null;
  /** Since when the request log is kept, for what comes from it. */
  logFrom: number | undefined;
  span: TimeSpan;
}

async function getPeriod(request: ReportRequest, span: TimeSpan): Promise<Period> {
  const { by } = request;
  if (by === "client") return (await getLogged(request, span)).period;
  const { rows, total, ...costs } = await getCosts({ ...request, by }, span);
  const shown = rows.map((row) => reportRow(row, by));
  return { ...costs, rows: mostFirst(shown, by), total: total ?? noUsage, logFrom: undefined, span };
}

/** By the request log, which knows clients, and any part of an hour. */
async function getLogged({ filter, by, range }: ReportRequest, span: TimeSpan) {
  const { tag: _tag, owner: _owner, ...filters } = filterParameters(filter);
  const [since, until] = [seoulTimestamp(span.from), seoulTimestamp(span.to)];
  const group = isLogGroup(by) ? by : "client";
  const query = { by: logGroups[group], since, until, limit: 500, ...filters };
  const [{ rows, kept_from, counted_from, ...groups }, { names, labels, prices_changed_at }] = await Promise.all([
    responseBody(api.requests.groups.get({ query })),
    fetchCosts({ filter, range, by: "day" }, span, undefined),
  ]);
  const logFrom = Date.parse(kept_from);
  const shown = rows.map((row) => loggedRow(row, group));
  const ofCounts = { names, labels, prices_changed_at, logFrom, span };
  const isWhole = logFrom <= span.from && counted_from === null;
  return { period: { ...groups, rows: mostFirst(shown, group), ...ofCounts }, isWhole };
}

/** A part of an hour, if the request log has all of it. */
async function getMinutes(request: ReportRequest, span: TimeSpan): Promise<Period | undefined> {
  const { by, filter } = request;
  const isOfHours = span.from === floorToStep(span.from, hourMs) && span.to === ceilToStep(span.to, hourMs);
  if (isOfHours || !isLogGroup(by) || filter.tag !== undefined || filter.owner !== undefined) return undefined;
  const { period, isWhole } = await getLogged(request, span);
  return isWhole ? period : undefined;
}

/** What the table of usage shows, and the figures above it. */
export interface Report extends Period {
  /** Undefined if there was nothing. */
  before: Period | undefined;
  request: ReportRequest;
  fetchedAt: number;
}

async function getReport(request: ReportRequest): Promise<Report> {
  const now = serverNow();
  const { zoom } = request.range;
  const minutes = zoom && (await getMinutes(request, chosenSpan(request.range, now, maxDays)));
  if (minutes !== undefined) return { ...minutes, before: undefined, request, fetchedAt: serverNow() };
  const earlier = spanBeforeOf(request, now);
  const [shown, before] = await Promise.all([
    getPeriod(request, spanOf(request, now)),
    earlier && getPeriod(request, earlier),
  ]);
  const hasBefore = before !== undefined && before.total.request_count > 0;
  return { ...shown, before: hasBefore ? before : undefined, request, fetchedAt: serverNow() };
}

export const useReportQuery = (
  request: () => ReportRequest,
  enabled: () => boolean = () => true,
): QueryResult<typeof getReport> =>
  useQuery(() => ({
    queryKey: ["usage", "report", request()],
    queryFn: () => getReport(request()),
    enabled: enabled(),
    refetchInterval: refetchSoonerAfterError(60_000),
    placeholderData: keepPreviousData,
  }));
