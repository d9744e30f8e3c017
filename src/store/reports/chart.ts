import type { Engine } from "../engine/engine.ts";
import { findNames } from "../keys/subjects.ts";
import { isByLabel, noLabels, readLabels, usageCondition } from "./key-filter.ts";
import type { ChartColumns, ChartGroup, ChartRange, GroupId, SumColumns, UsageMetric } from "./contract.ts";
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

/** The keys of a chart, or what else it is by. */
interface Ranking {
  /** Highest first. */
  all: readonly GroupSum[];
  /** Those with a series of their own. */
  top: readonly GroupSum[];
  /** Those that are summed as one. */
  rest: readonly GroupSum[];
}

/** The values of consecutive buckets. */
interface BucketColumns {
  /** The start of the first bucket, minutes since the epoch. */
  first: number;
  series: ReadonlyMap<GroupId, number[]>;
  other: number[];
}

/** Reads the sums of all keys first, mostly from days and hours, and then only the buckets that the caller lacks. */
export async function* chart(engine: Engine, range: ChartRange): AsyncGenerator<string> {
  const readRows = await rowReader(engine, range);
  const ranking = yield* rank(range, readRows);
  const columns = yield* readColumns(range, readRows, ranking);
  const listed = listedOf(range, ranking);
  yield JSON.stringify(chartColumns(ranking, columns, listed, await readNames(engine, range.by, listed)));
}

/** Yields after each slice, so that flushes run in between. */
type Slices<Result> = AsyncGenerator<string, Result>;

type Names = ReadonlyMap<GroupId, string>;

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

async function readNames(engine: Engine, by: ChartGroup = "key", all: readonly GroupSum[]): Promise<Names> {
  if (by === "model") return new Map(all.map(({ id }) => [id, String(id)]));
  const toId = (id: GroupId): number => (by === "key" ? Number(id) : subjectOf(Number(id)));
  const found = new Map(
    await findNames(
      engine,
      all.map(({ id }) => toId(id)),
    ),
  );
  return new Map(all.map(({ id }) => [id, found.get(toId(id)) ?? ""]));
}

async function* rank(range: ChartRange, readRows: ReadRows): Slices<Ranking> {
  const byId = new Map<GroupId, GroupSum>();
  for await (const rows of readRows(range, oneBucket)) {
    for (const { keyId: id, ...row } of rows) {
      if (id !== null) byId.set(id, { id, ...addSums(byId.get(id) ?? noSum, row) });
    }
    yield "";
  }
  const value = (sum: GroupSum): number => valueOf(sum, range.metric);
  const all = [...byId.values()].toSorted((a, b) => value(b) - value(a) || (a.id < b.id ? -1 : 1));
  return { all, top: all.slice(0, range.top), rest: all.slice(range.top) };
}

function valueOf(sum: UsageSum, metric: UsageMetric): number {
  if (metric === "requests") return sum.requestCount;
  if (metric === "total") return sum.inputTokens + sum.outputTokens;
  return metric === "input" ? sum.inputTokens : sum.outputTokens;
}

async function* readColumns(range: ChartRange, readRows: ReadRows, { top }: Ranking): Slices<BucketColumns> {
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

/** A caller that lists no keys knows their names already. */
const listedOf = (range: ChartRange, { all, top }: Ranking): readonly GroupSum[] =>
  range.listed === 0 ? [] : all.slice(0, Math.max(range.listed, top.length));

function chartColumns(
  { all, rest }: Ranking,
  columns: BucketColumns,
  listed: readonly GroupSum[],
  names: Names,
): ChartColumns {
  return {
    firstMinute: columns.first,
    count: all.length,
    ...all.reduce<UsageSum>(addSums, noSum),
    listed: {
      id: listed.map(({ id }) => id),
      name: listed.map(({ id }) => names.get(id) ?? ""),
      ...columnsOf(listed),
    },
    series: Array.from(columns.series, ([id, values]) => ({ id, values })),
    other: {
      count: rest.length,
      ...rest.reduce<UsageSum>(addSums, noSum),
      values: rest.length === 0 ? [] : columns.other,
    },
  };
}

const columnsOf = (sums: readonly UsageSum[]): SumColumns =>
  mapCounters(sumFields, (field) => sums.map((sum) => sum[field]));
