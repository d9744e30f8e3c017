import { and, eq, gte, lt, min, sql } from "drizzle-orm";
import type { WallClock } from "../../time/clock.ts";
import { dayNumberFrom, dayNumberOf, minutesPerHour } from "../../time/seoul.ts";
import { type AddedUsage, prepareCountedResponses, prepareListCreators } from "./counted-responses.ts";
import type { Engine } from "../engine/engine.ts";
import { safeSum } from "../engine/safe-sum.ts";
import type { CommittedFlush, UsageStore } from "./contract.ts";
import { type FlushedUsage, incrementOf, type RefusedUsage } from "./batch.ts";
import { toStorageError } from "../storage-error.ts";
import { createUsageReports } from "../reports/reports.ts";
import { createUsageWriter } from "./writer.ts";
import {
  limitUsage,
  mapCounters,
  noUsage,
  type ResponseUsage,
  type Usage,
  type UsageIncrement,
  type UsageSum,
  addSums,
  noSum,
  sumFields,
} from "../../domain/usage.ts";

export function createUsageStore(engine: Engine, clock: WallClock): UsageStore {
  return {
    add: prepareAddUsage(engine, clock),
    listCreators: prepareListCreators(engine),
    ...prepareSums(engine),
    ...createUsageReports(engine),
  };
}

function prepareAddUsage(engine: Engine, clock: WallClock): UsageStore["add"] {
  const countedResponses = prepareCountedResponses(engine);
  const { transaction, recordFlush, write, writeByKey } = createUsageWriter(engine);

  /** @param tokens gets what each response adds */
  async function writePart(part: FlushedUsage, now: number, tokens: Map<ResponseUsage, Usage>): Promise<void> {
    const { increments, responses, requests, settled } = part;
    const added = responses.length === 0 ? [] : await countedResponses.count(responses, now);
    const newTokens = responses.map((response, index) =>
      incrementOf(response, limitUsage(response, added[index] ?? noUsage)),
    );
    const givenBack = responses.flatMap((response, index) => giveBack(response, newTokens[index], added[index]));
    // What adds nothing needs no row of its minute.
    const counted = newTokens.filter((one) => one.inputTokens + one.outputTokens > 0 || one.besideTokens !== undefined);
    await write({ increments: [...increments, ...counted, ...givenBack], requests, responses, newTokens, settled });
    for (const [index, response] of responses.entries()) tokens.set(response, added[index] ?? noUsage);
  }

  return async (increments, flush, responses = [], requests, settled = []) => {
    const now = clock();
    const usage = { increments, responses, settled, ...(requests && { requests }) };
    const written = increments.length + responses.length + settled.length;
    if (flush === undefined && requests === undefined && written === 0) return { added: [] };
    const commit = (work: (tokens: Map<ResponseUsage, Usage>) => Promise<RefusedUsage[]>): Promise<CommittedFlush> =>
      transaction(async () => {
        if (flush !== undefined && !(await recordFlush(flush, now))) return {};
        const tokens = new Map<ResponseUsage, Usage>();
        const refused = await work(tokens);
        return { added: responses.map((response) => tokens.get(response) ?? noUsage), refused };
      });
    try {
      return await commit(async (tokens) => {
        await writePart(usage, now, tokens);
        return [];
      });
    } catch (error) {
      if (!toStorageError(error).isRefusal) throw error;
      return commit((tokens) => writeByKey(usage, (part) => writePart(part, now, tokens)));
    }
  };
}

/**
 * Gives back to the day that was charged: on another one, it would be room for more tokens than a day may have.
 * @param newTokens of the read, changed if that day is its own
 * @returns what is given back to another day
 */
function giveBack(
  response: ResponseUsage,
  newTokens: UsageIncrement | undefined,
  { givenBack }: AddedUsage = noUsage,
): UsageIncrement[] {
  if (givenBack === undefined) return [];
  const { tokens, chargedAt } = givenBack;
  const charge = { besideTokens: -tokens, estimatedTokens: -tokens };
  if (dayNumberOf(chargedAt) !== dayNumberOf(response.closedAt)) {
    return [incrementOf({ ...response, closedAt: chargedAt }, { ...noUsage, ...charge })];
  }
  Object.assign(newTokens ?? {}, charge);
  return [];
}

function prepareSums({
  db,
  tables,
}: Engine): Pick<UsageStore, "sumOfDay" | "sumOfMinutes" | "hasMinutesFrom" | "sumOfKeys"> {
  const { keys, usageDay, usageHour, usageMinute } = tables;
  const sumOf = (table: typeof usageMinute | typeof usageHour | typeof usageDay | typeof keys) =>
    mapCounters(sumFields, (field) => sql`coalesce(${safeSum(table[field])}, 0)`.mapWith(Number));
  const sumOfMinuteRows = async (from: number, to: number): Promise<UsageSum> =>
    firstOrZero(
      await db
        .select(sumOf(usageMinute))
        .from(usageMinute)
        .where(and(gte(usageMinute.minute, from), lt(usageMinute.minute, to))),
    );

  return {
    async sumOfDay(day) {
      return firstOrZero(
        await db
          .select(sumOf(usageDay))
          .from(usageDay)
          .where(eq(usageDay.day, dayNumberFrom(day))),
      );
    },
    async sumOfMinutes(from, to) {
      const firstHour = Math.ceil(from / minutesPerHour);
      const lastHour = Math.floor(to / minutesPerHour);
      if (firstHour >= lastHour) return await sumOfMinuteRows(from, to);
      const hours = await db
        .select(sumOf(usageHour))
        .from(usageHour)
        .where(and(gte(usageHour.hour, firstHour), lt(usageHour.hour, lastHour)));
      const before = await sumOfMinuteRows(from, firstHour * minutesPerHour);
      const after = await sumOfMinuteRows(lastHour * minutesPerHour, to);
      return addSums(firstOrZero(hours), addSums(before, after));
    },
    async hasMinutesFrom(minute) {
      const [oldest] = await db.select({ minute: min(usageMinute.minute) }).from(usageMinute);
      const firstHour = Math.ceil(minute / minutesPerHour);
      const beforeHour = Math.floor((oldest?.minute ?? Number.MAX_SAFE_INTEGER) / minutesPerHour);
      const isWithout = and(gte(usageHour.hour, firstHour), lt(usageHour.hour, beforeHour));
      return (await db.select({ hour: usageHour.hour }).from(usageHour).where(isWithout).limit(1)).length === 0;
    },
    async sumOfKeys() {
      return firstOrZero(await db.select(sumOf(keys)).from(keys));
    },
  };
}

function firstOrZero(rows: UsageSum[]): UsageSum {
  return rows[0] ?? noSum;
}
