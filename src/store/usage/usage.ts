import { and, eq, gt, gte, lt, min, type SQL, sql } from "drizzle-orm";
import type { WallClock } from "../../time/clock.ts";
import { dayNumberFrom, minutesPerHour } from "../../time/seoul.ts";
import { prepareCountOwned, prepareFindOwners, prepareNotes } from "./stored.ts";
import { type Engine, safeSum } from "../engine/engine.ts";
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
  type UsageSum,
  addSums,
  noSum,
  sumFields,
} from "../../domain/usage.ts";

export function createUsageStore(engine: Engine, clock: WallClock): UsageStore {
  return {
    add: prepareAddUsage(engine, clock),
    findOwners: prepareFindOwners(engine),
    countOwned: prepareCountOwned(engine),
    ...prepareSums(engine),
    ...createUsageReports(engine),
  };
}

function prepareAddUsage(engine: Engine, clock: WallClock): UsageStore["add"] {
  const note = prepareNotes(engine);
  const { transaction, recordFlush, write, writeByKey } = createUsageWriter(engine);

  /** @param tokens gets what each response adds */
  async function writePart(part: FlushedUsage, now: number, tokens: Map<ResponseUsage, Usage>): Promise<void> {
    const { increments, responses } = part;
    const added = responses.length === 0 ? [] : await note(responses, now);
    const newTokens = responses.map((response, index) =>
      incrementOf(response, limitUsage(response, added[index] ?? noUsage)),
    );
    // What adds nothing needs no row of its minute.
    const counted = newTokens.filter(({ inputTokens, outputTokens }) => inputTokens + outputTokens > 0);
    await write({ ...part, increments: [...increments, ...counted], newTokens });
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

function prepareSums({
  db,
  tables,
}: Engine): Pick<UsageStore, "sumOfDay" | "sumOfMinutes" | "hasMinutesFrom" | "sumOfKeys"> {
  const { keys, usageDay, usageHour, usageMinute } = tables;
  const sumOf = async (
    table: typeof usageMinute | typeof usageHour | typeof usageDay | typeof keys,
    where?: SQL,
  ): Promise<UsageSum> => {
    const sums = mapCounters(sumFields, (field) => sql`coalesce(${safeSum(table[field])}, 0)`.mapWith(Number));
    return (await db.select(sums).from(table).where(where))[0] ?? noSum;
  };
  const sumOfMinuteRows = (from: number, to: number): Promise<UsageSum> =>
    sumOf(usageMinute, and(gte(usageMinute.minute, from), lt(usageMinute.minute, to)));

  return {
    sumOfDay: (day) => sumOf(usageDay, and(eq(usageDay.day, dayNumberFrom(day)), gt(usageDay.keyId, 0))),
    async sumOfMinutes(from, to) {
      const firstHour = Math.ceil(from / minutesPerHour);
      const lastHour = Math.floor(to / minutesPerHour);
      if (firstHour >= lastHour) return await sumOfMinuteRows(from, to);
      const hours = await sumOf(usageHour, and(gte(usageHour.hour, firstHour), lt(usageHour.hour, lastHour)));
      const before = await sumOfMinuteRows(from, firstHour * minutesPerHour);
      const after = await sumOfMinuteRows(lastHour * minutesPerHour, to);
      return addSums(hours, addSums(before, after));
    },
    async hasMinutesFrom(minute) {
      const [oldest] = await db.select({ minute: min(usageMinute.minute) }).from(usageMinute);
      const firstHour = Math.ceil(minute / minutesPerHour);
      const beforeHour = Math.floor((oldest?.minute ?? Number.MAX_SAFE_INTEGER) / minutesPerHour);
      const isWithout = and(gte(usageHour.hour, firstHour), lt(usageHour.hour, beforeHour));
      return (await db.select({ hour: usageHour.hour }).from(usageHour).where(isWithout).limit(1)).length === 0;
    },
    sumOfKeys: () => sumOf(keys),
  };
}
