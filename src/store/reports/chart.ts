import type { Engine } from "../engine/engine.ts";
import { findNames } from "../keys/subjects.ts";
import { isByLabel, noLabels, readLabels, usageCondition } from "./key-filter.ts";
import type { ChartColumns, ChartGroup, ChartRange, GroupId, UsageMetric } from "./contract.ts";
import {
  type GroupColumn,
  type MinuteRange,
  oneBucket,
  summedRowsPerSlice,
  sumSlices,
  type UsageRow,
} from "./slices.ts";
import { subjectOf } from "../../domain/keys.ts";
import { dayNumberOf, minuteOf, msPerMinute, startOfDayNumber } from "../../time/seoul.ts";
import { type UsageSum, addSums, mapCounters, noSum, sumFields } from "../../domain/usage.ts";

interface GroupSum extends UsageSum {
  id: GroupId;
}

/** Reads the sums of all keys first, mostly from days and hours, and then only the buckets that the caller lacks. */
export async function* chart(engine: Engine, range: ChartRange): AsyncGenerator<string> {
  const readRows = await rowReader(engine, range);
  const all = yield* readSums(range, readRows);
  const [top, rest] = [all.slice(0, range.top), all.slice(range.top)];
  const { first, series, other } = yield* readColumns(range, readRows, top);
  // A caller that lists no keys knows their names already.
  const listed = range.listed === 0 ? [] : all.slice(0, Math.max(range.listed, top.length));
  const ids = listed.map(({ id }) => id);
  yield JSON.stringify({
    firstMinute: first,
    count: all.length,
    ...all.reduce<UsageSum>(addSums, noSum),
    listed: {
      id: ids,
      name: await readNames(engine, range.by, ids),
      ...mapCounters(sumFields, (field) => listed.map((sum) => sum[field])),
    },
    series: Array.from(series, ([id, values]) => ({ id, values })),
    other: {
      count: rest.length,
      ...rest.reduce<UsageSum>(addSums, noSum),
      values: rest.length === 0 ? [] : other,
    },
  } satisfies ChartColumns);
}

/** Yields after each slice, so that flushes run in between. */
type Slices<Result> = AsyncGenerator<string, Result>;

const groupColumns: Readonly<Record<ChartGroup, GroupColumn>> = {
  key: "keyId",
  team: "teamId",
  user: "userId",
  model: "model",
};

/** Whether a chart is made from the sums by model, which have no minutes. */
export const isByModel = ({ by = "key", teamId, userId, model }: Partial<ChartRange>): boolean =>
  by !== "key" || teamId !== undefined || userId !== undefined || model !== undefined;

type ReadRows = (
  minutes: MinuteRange,
  bucketMinutes: number,
  apart?: readonly GroupId[],
) => AsyncIterable<UsageRow<GroupId | null>[]>;

async function rowReader(engine: Engine, range: ChartRange): Promise<ReadRows> {
  const labels = isByLabel(range) ? await readLabels(engine) : noLabels;
  const changes = labels.changedOn.map((day) => minuteOf(startOfDayNumber(day)));
  const options = {
    column: groupColumns[range.by ?? "key"],
    byModel: isByModel(range),
    sliceRows: summedRowsPerSlice,
  };
  return async function* (minutes, bucketMinutes, apart) {
    for (let { from } = minutes; from < minutes.to;) {
      const to = Math.min(minutes.to, ...changes.filter((minute) => minute > from));
      const condition = usageCondition(range, labels.on(dayNumberOf(from * msPerMinute)));
      const all = { ...options, condition, ...(apart !== undefined && { apart }) };
      yield* sumSlices<GroupId>(engine, { from, to }, bucketMinutes, all);
      from = to;
    }
  };
}

async function readNames(engine: Engine, by: ChartGroup = "key", ids: readonly GroupId[]): Promise<string[]> {
  if (by === "model") return ids.map(String);
  const subjects = ids.map((id) => (by === "key" ? Number(id) : subjectOf(Number(id))));
  const names = new Map(await findNames(engine, subjects));
  return subjects.map((id) => names.get(id) ?? "");
}

/** @returns the highest first */
async function* readSums(range: ChartRange, readRows: ReadRows): Slices<GroupSum[]> {
  const byId = new Map<GroupId, GroupSum>();
  for await (const rows of readRows(range, oneBucket)) {
    for (const { keyId: id, ...row } of rows) {
      if (id !== null) byId.set(id, { id, ...addSums(byId.get(id) ?? noSum, row) });
    }
    yield "";
  }
  const value = (sum: GroupSum): number => valueOf(sum, range.metric);
  return [...byId.values()].toSorted((a, b) => value(b) - value(a) || (a.id < b.id ? -1 : 1));
}

function valueOf(sum: UsageSum, metric: UsageMetric): number {
  if (metric === "requests") return sum.requestCount;
  if (metric === "total") return sum.inputTokens + sum.outputTokens;
  return metric === "input" ? sum.inputTokens : sum.outputTokens;
}

/** The values of consecutive buckets. @returns the start of the first one too, minutes since the epoch */
async function* readColumns(
  range: ChartRange,
  readRows: ReadRows,
  top: readonly GroupSum[],
): Slices<{ first: number; series: ReadonlyMap<GroupId, number[]>; other: number[] }> {
  const { to, bucketMinutes, metric } = range;
  const first = firstMinute(range, top);
  const emptyColumn = (): number[] => Array.from({ length: (to - first) / bucketMinutes }, () => 0);
  const series = new Map(top.map(({ id }) => [id, emptyColumn()]));
  const other = emptyColumn();
  for await (const rows of readRows({ from: first, to }, bucketMinutes, [...series.keys()])) {
    for (const row of rows) {
      const values = (row.keyId === null ? undefined : series.get(row.keyId)) ?? other;
      const index = (row.period - first) / bucketMinutes;
      values[index] = (values[index] ?? 0) + valueOf(row, metric);
    }
    yield "";
  }
  return { first, series, other };
}

/** The start of the first bucket that the caller lacks: of all buckets if other keys are on top than it knows. */
function firstMinute({ from, to, known, bucketMinutes }: ChartRange, top: readonly GroupSum[]): number {
  if (known === undefined || known.ids.length !== top.length) return from;
  const knownIds = new Set(known.ids);
  if (!top.every(({ id }) => knownIds.has(id))) return from;
  const buckets = Math.floor((known.minute - from) / bucketMinutes);
  return from + Math.min(Math.max(0, buckets), (to - from) / bucketMinutes) * bucketMinutes;
}
