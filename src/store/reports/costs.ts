import { type SQL, sql } from "drizzle-orm";
import { priceTokens, type ModelPrice, priceDays, pricesOn, rankPrices } from "../../domain/prices.ts";
import { type KeyId, subjectOf } from "../../domain/keys.ts";
import { countedFields, mapCounters } from "../../domain/usage.ts";
import { type Days, hourOfDay, listMonths, splitByMonths } from "../../time/seoul.ts";
import { type Engine, rowsPerSlice, safeSum } from "../engine/engine.ts";
import { findNames } from "../keys/subjects.ts";
import {
  hasLabels,
  labelsOf,
  readLabels,
  type Labels,
  type UsageCondition,
  usageCondition,
  isByLabel,
} from "./key-filter.ts";
import type { CostGroup, CostPosition, CostRange, CostRow, CostRows, CostSum } from "./contract.ts";

// The rows of a page are the first ones in an order that does not depend on what is counted: a row that grows between two pages
// is on one of them. So the sums of all others are dropped as soon as there are too many, however many names clients make up.

/** What the rows of each grouping differ in, besides the text of their position. */
const groupings: Readonly<Record<CostGroup, { day?: true; key?: true; of?: "teamId" | "userId"; model?: true }>> = {
  day: { day: true },
  key: { key: true },
  team: { of: "teamId" },
  user: { of: "userId" },
  model: { model: true },
  tag: {},
  owner: {},
  key_model: { key: true, model: true },
};

/** Only sums leave the database. Of a key and a day there are far fewer rows. */
const sliceRows = 5 * rowsPerSlice;
/** Days or months of one key that are read at once. */
const keyPeriods = 31;

/** The sums of some models, keys and days. */
interface Summed extends Omit<CostRow, "text" | "cost" | "isPartial"> {
  model: string;
}

/** Yields after each slice, so that flushes run in between. */
export async function* costs(engine: Engine, range: CostRange): AsyncGenerator<string> {
  const labels = await readLabels(engine);
  const usesLabels = range.by === "tag" || range.by === "owner" || isByLabel(range);
  const ranked = rankPrices(range.prices);
  const page = createPage(range);
  for (const part of partsOf(range, [...priceDays(ranked), ...(usesLabels ? labels.changedOn : [])])) {
    const priceOf = pricesOn(ranked, part.day);
    const labelsThen = labels.on(part.day);
    const textsOf = textsBy(range.by, labelsThen);
    for await (const rows of readSlices(engine, part, range, usageCondition(range, labelsThen))) {
      for (const row of rows) page.add(row, textsOf(row), priceOf(row.model));
      yield "";
    }
  }
  const found = page.end();
  const { keyId, teamId, userId, lastDay } = range;
  const toId = groupings[range.by].of === undefined ? Number : subjectOf;
  const of = [keyId, teamId && subjectOf(teamId), userId && subjectOf(userId)].filter((id) => id !== undefined);
  const ids = new Set([...found.rows.map((row) => toId(row.keyId)), ...of]);
  const report: CostRows = {
    ...found,
    names: await findNames(engine, [...ids]),
    labels: (["tag", "owner"] as const).filter((kind) => hasLabels(labels.on(lastDay), kind)),
  };
  yield JSON.stringify(report);
}

/** In units. */
interface Part extends Days {
  /** The rows that are read. */
  unit: "hour" | "day" | "month";
  /** Its first day; hours are of one day. */
  day: number;
}

/** The latest days first. @param changes days on which a part begins: within it, prices and labels stay the same */
function* partsOf({ firstDay, lastDay, hours, by, after }: CostRange, changes: readonly number[]): Generator<Part> {
  const starts = [firstDay, ...changes.filter((day) => day > firstDay)];
  const isByDay = groupings[by].day === true;
  for (let to = 1 + (isByDay ? Math.min(lastDay, after?.day ?? lastDay) : lastDay); to > firstDay;) {
    const isPart = (day: number): boolean =>
      hours !== undefined && (hours.from > hourOfDay(day) || hours.to < hourOfDay(day + 1));
    let from = Math.max(...starts.filter((start) => start < to));
    if (hours !== undefined && isPart(to - 1)) {
      from = to - 1;
      const part = { from: Math.max(hours.from, hourOfDay(from)), to: Math.min(hours.to, hourOfDay(to)) };
      yield { unit: "hour", day: from, ...part };
    } else {
      if (isPart(from)) from += 1;
      const parts = isByDay ? [{ unit: "day" as const, from, to }] : splitByMonths({ from, to });
      for (const part of parts) yield { ...part, day: part.from };
    }
    to = from;
  }
}

/** The texts of the rows that usage belongs to. */
function textsBy(by: CostGroup, labels: Labels): (usage: Summed) => readonly string[] {
  if (by === "tag" || by === "owner") return ({ keyId }) => labelsOf(labels, keyId, by);
  return groupings[by].model === true ? ({ model }) => [model] : () => [""];
}

const noCosts = (): CostSum => ({
  requestCount: 0,
  ...mapCounters(countedFields, () => 0),
  cost: null,
  isPartial: false,
});

function addCosts(sum: CostSum, usage: Summed, price: ModelPrice | undefined): void {
  sum.requestCount += usage.requestCount;
  for (const field of countedFields) sum[field] += usage[field];
  if (price === undefined) sum.isPartial ||= pricedTokensOf(usage) > 0;
  else sum.cost = (sum.cost ?? 0) + priceTokens(price, usage);
}

function roundCost(sum: CostSum): void {
  // Without the noise of floating point, which differs by the order in which parts are added.
  if (sum.cost !== null) sum.cost = Number(sum.cost.toPrecision(14));
}

function createPage({ by, limit, after }: CostRange) {
  const { day: byDay, of, key: byKey = of !== undefined } = groupings[by];
  const total = noCosts();
  let sums = new Map<string, CostRow>();
  /** Positions after this one are on a later page. */
  let last: CostPosition | undefined;

  function addTo(position: CostPosition, usage: Summed, price: ModelPrice | undefined): void {
    if (after !== undefined && compare(position, after) <= 0) return;
    if (last !== undefined && compare(position, last) > 0) return;
    const id = `${position.day} ${position.keyId} ${position.text}`;
    let sum = sums.get(id);
    if (sum === undefined) {
      sum = { ...position, ...noCosts() };
      sums.set(id, sum);
      if (sums.size > 4 * limit) dropLater();
    }
    addCosts(sum, usage, price);
  }

  const inOrder = (): [string, CostRow][] => [...sums].toSorted(([, a], [, b]) => compare(a, b));

  /** Keeps one more than fit, which tells that there is another page. */
  function dropLater(): void {
    const kept = inOrder().slice(0, limit + 1);
    sums = new Map(kept);
    last = kept.at(-1)?.[1];
  }

  return {
    add(usage: Summed, texts: readonly string[], price: ModelPrice | undefined): void {
      addCosts(total, usage, price);
      for (const text of texts) {
        addTo({ day: byDay === true ? usage.day : 0, keyId: byKey ? usage.keyId : 0, text }, usage, price);
      }
    },
    end(): Pick<CostRows, "rows" | "total" | "next"> {
      const found = inOrder().map(([, sum]) => sum);
      const rows = found.slice(0, limit);
      for (const row of [total, ...rows]) roundCost(row);
      const end = rows.at(-1);
      const next =
        found.length > limit && end !== undefined ? { day: end.day, keyId: end.keyId, text: end.text } : null;
      return { rows, total, next };
    },
  };
}

/** The latest day first, then by key, then by text. */
const compare = (a: CostPosition, b: CostPosition): number =>
  b.day - a.day || a.keyId - b.keyId || (a.text < b.text ? -1 : a.text === b.text ? 0 : 1);

const pricedTokensOf = (usage: Summed): number =>
  usage.inputTokens + usage.cachedBesideInputTokens + usage.outputTokens;

/** What has the same day, key and model, as far as the rows or their prices need these. */
async function* readSlices(
  engine: Engine,
  part: Part,
  { by, keyId, prices, after }: CostRange,
  condition: UsageCondition,
): AsyncGenerator<Summed[]> {
  const source = sourceOf(engine, part);
  const { table, period } = source;
  const { day, model, key, of } = groupings[by];
  const id = table[of ?? "keyId"];
  const groups = [
    ...(day === true && part.unit === "day" ? [period] : []),
    ...(key === true || of !== undefined || by === "tag" || by === "owner" ? [id] : []),
    ...(model === true || prices.length > 0 ? [table.model] : []),
  ];
  const picked = (column: (typeof groups)[number], none: SQL): SQL => (groups.includes(column) ? sql`${column}` : none);
  const counters = countedFields.map((field) => sql`${safeSum(table[field])} as ${sql.identifier(field)}`);
  const isLater = by === "key_model" && after !== undefined ? sql`${table.keyId} >= ${after.keyId}` : sql`1 = 1`;
  for await (const slice of keyId === undefined ? slicesOf(engine, source) : periodsOfKey(source, keyId)) {
    yield await engine.rows<Summed>(
      sql`select ${picked(period, sql`${part.day}`)} as "day", ${picked(id, sql`0`)} as "keyId",
        ${picked(table.model, sql`''`)} as "model", ${safeSum(table.requestCount)} as "requestCount",
        ${sql.join(counters, sql`, `)}
        from ${table} where ${slice} and ${isLater} and ${condition(table)}
        ${groups.length === 0 ? sql`having count(*) > 0` : sql`group by ${sql.join(groups, sql`, `)}`}`,
      ["model"],
    );
  }
}

type Source = Part & Pick<ReturnType<typeof sourceOf>, "table" | "period">;

function sourceOf({ tables: { usageModelHour, usageModelDay, usageModelMonth } }: Engine, part: Part) {
  if (part.unit === "hour") return { ...part, table: usageModelHour, period: usageModelHour.hour };
  if (part.unit === "day") return { ...part, table: usageModelDay, period: usageModelDay.day };
  return { ...part, table: usageModelMonth, period: usageModelMonth.month };
}

/** Slices of the rows, the latest first; those of a period and a key stay together. */
async function* slicesOf({ rows }: Engine, { table, period, from, to }: Source): AsyncGenerator<SQL> {
  const position = sql`(${period}, ${table.keyId})`;
  for (let end = { period: to - 1, keyId: Number.MAX_SAFE_INTEGER }; ;) {
    const upTo = sql`${position} <= (${end.period}, ${end.keyId})`;
    const [found] = await rows<typeof end>(
      sql`select ${period} as "period", ${table.keyId} as "keyId" from ${table}
        where ${period} >= ${from} and ${upTo}
        order by ${period} desc, ${table.keyId} desc limit 1 offset ${sliceRows}`,
    );
    if (found === undefined) {
      yield sql`${period} >= ${from} and ${upTo}`;
      return;
    }
    const isSame = found.period === end.period && found.keyId === end.keyId;
    const before = isSame ? { ...found, keyId: found.keyId - 1 } : found;
    yield sql`${position} > (${before.period}, ${before.keyId}) and ${upTo}`;
    end = before;
  }
}

/** Period by period, so that the primary key finds the rows of the key. */
function* periodsOfKey({ table, period, unit, from, to }: Source, keyId: KeyId): Generator<SQL> {
  const periods =
    unit === "month" ? listMonths({ from, to }) : Array.from({ length: to - from }, (_, index) => from + index);
  for (let at = 0; at < periods.length; at += keyPeriods) {
    yield sql`${period} in ${periods.slice(at, at + keyPeriods)} and ${table.keyId} = ${keyId}`;
  }
}
