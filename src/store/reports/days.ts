import { type SQL, sql } from "drizzle-orm";
import { dayNumberFrom, dayNumberOf, minuteOf, minutesPerDay, msPerMinute, startOfDay } from "../../time/seoul.ts";
import type { Engine } from "../engine/engine.ts";
import { type KeyCondition, keyCondition } from "./key-filter.ts";
import { readKeyNames } from "../keys/names.ts";
import { rowsPerSlice } from "../engine/json-slices.ts";
import { safeSum } from "../engine/safe-sum.ts";
import type { DayAndKeyColumns, DayColumns, DayRange } from "./contract.ts";
import { columnsOf } from "./columns.ts";
import { summedRowsPerSlice, sumSlices, type UsageRow } from "./slices.ts";
import type { KeyId } from "../../domain/keys.ts";
import { type UsageSum, addSums, noSum } from "../../domain/usage.ts";

/** A range never has more days. */
const maxDays = 366;

/** The sum of each day, and the sum over the keys that exist. */
export async function* byDay(engine: Engine, range: DayRange): AsyncGenerator<string> {
  const condition = keyCondition(range, await readKeyNames(engine));
  const from = minuteOf(startOfDay(range.firstDay));
  const days = new Map<number, UsageSum>();
  let rowCount = 0;
  const sums = sumSlices(engine, { from, to: from + maxDays * minutesPerDay }, minutesPerDay, {
    condition,
    apart: [],
    sliceRows: summedRowsPerSlice,
  });
  for await (const rows of sums) {
    for (const row of rows) {
      rowCount += row.rowCount;
      days.set(row.period, addSums(days.get(row.period) ?? noSum, row));
    }
    yield "";
  }
  const latestFirst = [...days].toReversed();
  const columns: DayColumns = {
    rowCount,
    allTime: await sumOfExistingKeys(engine, condition),
    days: {
      day: latestFirst.map(([minute]) => dayNumberOf(minute * msPerMinute)),
      ...columnsOf(latestFirst.map(([, sum]) => sum)),
    },
  };
  yield JSON.stringify(columns);
}

/** A page has whole days, and so possibly more rows. */
const rowsPerPage = 200;

/** The latest days by key, as many as fill a page. */
export async function* byDayAndKey(engine: Engine, range: DayRange): AsyncGenerator<string> {
  const names = await readKeyNames(engine);
  const found: UsageRow[] = [];
  for await (const rows of daySlices(engine, range, keyCondition(range, names))) {
    found.push(...rows);
    yield "";
    if (found.length > rowsPerPage) break;
  }
  const page = firstDays(found);
  const last = page.at(-1);
  const columns: DayAndKeyColumns = {
    nextBefore: last !== undefined && found.length > rowsPerPage ? last.period : null,
    names: namesOf(page, names),
    rows: {
      day: page.map(({ period }) => period),
      keyId: page.map(({ keyId }) => keyId),
      ...columnsOf(page),
    },
  };
  yield JSON.stringify(columns);
}

/** Keeps as many whole days as fill a page. */
function firstDays(rows: readonly UsageRow[]): readonly UsageRow[] {
  const lastDay = rows[rowsPerPage - 1]?.period ?? 0;
  return rows.filter(({ period }) => period >= lastDay);
}

/** The names of the keys of a page, each once. */
function namesOf(page: readonly UsageRow[], names: ReadonlyMap<KeyId, string>): DayAndKeyColumns["names"] {
  const ids = [...new Set(page.map(({ keyId }) => keyId))];
  return { keyId: ids, name: ids.map((id) => names.get(id) ?? "") };
}

async function sumOfExistingKeys({ rows, tables: { keys } }: Engine, condition: KeyCondition): Promise<UsageSum> {
  const [sum] = await rows<UsageSum>(
    sql`select coalesce(${safeSum(keys.requestCount)}, 0) as "requestCount",
      coalesce(${safeSum(keys.inputTokens)}, 0) as "inputTokens",
      coalesce(${safeSum(keys.outputTokens)}, 0) as "outputTokens" from ${keys} where ${condition(keys.id)}`,
  );
  return sum ?? noSum;
}

/** Rows by day, latest first, and key. A slice has as many whole days as fit; a day with more rows is one of its own. */
export async function* daySlices(
  { rows, tables: { usageDay } }: Engine,
  { firstDay, beforeDay }: Pick<DayRange, "firstDay" | "beforeDay">,
  condition?: KeyCondition,
): AsyncGenerator<UsageRow[]> {
  const sinceDay = dayNumberFrom(firstDay);
  let before = beforeDay === undefined ? Number.MAX_SAFE_INTEGER : dayNumberFrom(beforeDay);
  const included = condition?.(usageDay.keyId) ?? sql`1 = 1`;
  for (;;) {
    const within = sql`${usageDay.day} >= ${sinceDay} and ${usageDay.day} < ${before}`;
    const from = await startOfSlice(within);
    if (from === undefined) return;
    yield await rows<UsageRow>(
      sql`select ${usageDay.day} as "period", ${usageDay.keyId} as "keyId",
        ${usageDay.requestCount} as "requestCount", ${usageDay.inputTokens} as "inputTokens",
        ${usageDay.outputTokens} as "outputTokens"
        from ${usageDay} where ${within} and ${usageDay.day} >= ${from} and ${included}
        order by ${usageDay.day} desc, ${usageDay.keyId}`,
    );
    before = from;
  }

  async function startOfSlice(within: SQL): Promise<number | undefined> {
    const latestFirst = sql`from ${usageDay} where ${within} order by ${usageDay.day} desc, ${usageDay.keyId} desc limit 1`;
    const [latest] = await rows<{ day: number }>(sql`select ${usageDay.day} as "day" ${latestFirst}`);
    const [beyond] = await rows<{ day: number }>(
      sql`select ${usageDay.day} as "day" ${latestFirst} offset ${rowsPerSlice}`,
    );
    if (latest === undefined || beyond === undefined) return latest && sinceDay;
    return Math.min(beyond.day + 1, latest.day);
  }
}
