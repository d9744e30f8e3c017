import type { Engine } from "../engine/engine.ts";
import { keyCondition, readKeyNames } from "./key-filter.ts";
import type { ChartColumns, ChartRange, SumColumns, UsageMetric } from "./contract.ts";
import { oneBucket, summedRowsPerSlice, sumSlices } from "./slices.ts";
import type { KeyId } from "../../domain/keys.ts";
import { type UsageSum, addSums, mapCounters, noSum, sumFields } from "../../domain/usage.ts";

interface KeySum extends UsageSum {
  keyId: KeyId;
}

/** The keys of a chart. */
interface Ranking {
  /** Highest first; hidden keys too. */
  all: readonly KeySum[];
  /** Those with a series of their own. */
  top: readonly KeySum[];
  /** Those that are summed as one. */
  rest: readonly KeySum[];
}

/** The values of consecutive buckets. */
interface BucketColumns {
  /** The start of the first bucket, minutes since the epoch. */
  first: number;
  series: ReadonlyMap<KeyId, number[]>;
  other: number[];
}

/** Reads the sums of all keys first, mostly from days and hours, and then only the buckets that the caller lacks. */
export async function* chart(engine: Engine, range: ChartRange): AsyncGenerator<string> {
  const names = await readKeyNames(engine);
  const ranking = yield* rankKeys(engine, range, names);
  const columns = yield* readColumns(engine, range, names, ranking);
  yield JSON.stringify(chartColumns(range, ranking, columns, names));
}

/** Yields after each slice, so that flushes run in between. */
type Slices<Result> = AsyncGenerator<string, Result>;

type Names = ReadonlyMap<KeyId, string>;

async function* rankKeys(engine: Engine, range: ChartRange, names: Names): Slices<Ranking> {
  const byKey = new Map<KeyId, KeySum>();
  const condition = keyCondition({ ...range, hiddenIds: [] }, names);
  for await (const rows of sumSlices(engine, range, oneBucket, { condition, sliceRows: summedRowsPerSlice })) {
    for (const row of rows) byKey.set(row.keyId, addKeySums(byKey.get(row.keyId), row));
    yield "";
  }
  const value = (sum: KeySum): number => valueOf(sum, range.metric);
  const all = [...byKey.values()].toSorted((a, b) => value(b) - value(a) || a.keyId - b.keyId);
  const hidden = new Set(range.hiddenIds);
  const shown = all.filter(({ keyId }) => !hidden.has(keyId));
  return { all, top: shown.slice(0, range.top), rest: shown.slice(range.top) };
}

const addKeySums = (sum: KeySum | undefined, row: KeySum): KeySum => ({
  keyId: row.keyId,
  ...addSums(sum ?? noSum, row),
});

function valueOf(sum: UsageSum, metric: UsageMetric): number {
  if (metric === "requests") return sum.requestCount;
  if (metric === "total") return sum.inputTokens + sum.outputTokens;
  return metric === "input" ? sum.inputTokens : sum.outputTokens;
}

async function* readColumns(engine: Engine, range: ChartRange, names: Names, { top }: Ranking): Slices<BucketColumns> {
  const { to, bucketMinutes, metric } = range;
  const first = firstMinute(range, top);
  const emptyColumn = (): number[] => Array.from({ length: (to - first) / bucketMinutes }, () => 0);
  const series = new Map(top.map(({ keyId }) => [keyId, emptyColumn()]));
  const other = emptyColumn();
  const sums = sumSlices(engine, { from: first, to }, bucketMinutes, {
    condition: keyCondition(range, names),
    apart: [...series.keys()],
    sliceRows: summedRowsPerSlice,
  });
  for await (const rows of sums) {
    for (const row of rows) {
      const values = series.get(row.keyId) ?? other;
      const index = (row.period - first) / bucketMinutes;
      values[index] = (values[index] ?? 0) + valueOf(row, metric);
    }
    yield "";
  }
  return { first, series, other };
}

/** The start of the first bucket that the caller lacks: of all buckets if other keys are on top than it knows. */
function firstMinute({ from, to, known, bucketMinutes }: ChartRange, top: readonly KeySum[]): number {
  if (known === undefined || known.keyIds.length !== top.length) return from;
  const knownIds = new Set(known.keyIds);
  if (!top.every(({ keyId }) => knownIds.has(keyId))) return from;
  const buckets = Math.floor((known.minute - from) / bucketMinutes);
  return from + Math.min(Math.max(0, buckets), (to - from) / bucketMinutes) * bucketMinutes;
}

function chartColumns(
  range: ChartRange,
  { all, top, rest }: Ranking,
  columns: BucketColumns,
  names: Names,
): ChartColumns {
  const topIds = new Set(top.map(({ keyId }) => keyId));
  // A caller that lists no keys knows their names already.
  const listed = range.listed === 0 ? [] : all.filter(({ keyId }, index) => index < range.listed || topIds.has(keyId));
  return {
    firstMinute: columns.first,
    keyCount: all.length,
    ...[...top, ...rest].reduce<UsageSum>(addSums, noSum),
    keys: {
      keyId: listed.map(({ keyId }) => keyId),
      name: listed.map(({ keyId }) => names.get(keyId) ?? ""),
      ...columnsOf(listed),
    },
    series: Array.from(columns.series, ([keyId, values]) => ({ keyId, values })),
    other: {
      keyCount: rest.length,
      ...rest.reduce<UsageSum>(addSums, noSum),
      values: rest.length === 0 ? [] : columns.other,
    },
  };
}

const columnsOf = (sums: readonly UsageSum[]): SumColumns =>
  mapCounters(sumFields, (field) => sums.map((sum) => sum[field]));
