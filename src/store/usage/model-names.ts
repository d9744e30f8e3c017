import { and, eq, sql } from "drizzle-orm";
import { dayNumberOf, msPerMinute } from "../../time/seoul.ts";
import type { Engine } from "../engine/engine.ts";
import { otherModels } from "./batch.ts";
import type { UsageIncrement } from "../../domain/usage.ts";

/** How many names each key has a day; further ones are counted as one. Limited because clients choose them. */
const maxNames = 200;
/** Names that have latencies of their own in one hour. */
const maxHourlyNames = 50;
/** Days and keys whose names are kept in memory. */
const maxCached = 10_000;

export function createModelNames({ db, lock, tables: { usageModelDay } }: Engine) {
  /** By day and key. A name stays known: rows of days are not deleted. */
  const known = new Map<string, Set<string>>();
  const findNames = db
    .select({ model: usageModelDay.model })
    .from(usageModelDay)
    .where(and(eq(usageModelDay.day, sql.placeholder("day")), eq(usageModelDay.keyId, sql.placeholder("keyId"))))
    .prepare();

  async function isWithinLimit({ minute, keyId, model = "" }: UsageIncrement): Promise<boolean> {
    const day = dayNumberOf(minute * msPerMinute);
    const id = `${day}:${keyId}`;
    if (known.get(id)?.has(model) === true) return true;
    if (known.get(id)?.size === maxNames) return false;
    // Another process or instance may add names at this moment.
    await lock("model_names");
    const rows = await findNames.execute({ day, keyId });
    const names = new Set(rows.map((row) => row.model).filter((name) => name !== otherModels));
    if (known.size >= maxCached) known.clear();
    known.set(id, names);
    for (const own of added.get(id) ?? []) names.add(own);
    if (!names.has(model) && names.size >= maxNames) return false;
    names.add(model);
    added.set(id, (added.get(id) ?? new Set()).add(model));
    return true;
  }

  /** What the running transaction adds. */
  let added = new Map<string, Set<string>>();

  return {
    /** Within a transaction: replaces names above the limit. */
    async limit(increments: readonly UsageIncrement[]): Promise<readonly UsageIncrement[]> {
      added = new Map();
      const limited: UsageIncrement[] = [];
      for (const one of increments) {
        const isKept = one.model === otherModels || (await isWithinLimit(one));
        limited.push(isKept ? one : { ...one, model: otherModels });
      }
      return limited;
    },
    /** The transaction was rolled back, so the database may lack names that were seen in it. */
    forget: () => known.clear(),
  };
}

/** Adds the name to those of its hour if there is room. @returns the name that it is summed under */
export function limitHourlyModel(known: Map<number, Set<string>>, hour: number, model: string): string {
  const names = known.get(hour) ?? new Set();
  known.set(hour, names);
  const name = names.size < maxHourlyNames || names.has(model) ? model : otherModels;
  names.add(name);
  return name;
}
