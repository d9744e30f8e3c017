import { chargeFields, countedParts, mapCounters, sumFields } from "../../domain/usage.ts";
import type { Columns } from "./columns.ts";

/** The sums of usage that a key, a minute, an hour or a day has. */
export function defineCounters({ integer }: Columns) {
  return mapCounters(sumFields, () => integer().notNull());
}

export function defineUsageTables(columns: Columns) {
  const { table, integer, text, primaryKey, index } = columns;
  const counters = () => defineCounters(columns);
  /** What limits compare beside the input and output. */
  const charge = () => mapCounters(chargeFields, () => integer().notNull().default(0));
  const modelCounters = () => ({
    keyId: integer().notNull(),
    /** Empty if the requests named no model. */
    model: text().notNull(),
    ...counters(),
    ...mapCounters(countedParts, () => integer().notNull()),
  });

  return {
    // Time comes first in the primary keys of the usage tables, so that a flush touches neighbouring rows at their ends.
    usageMinute: table(
      "usage_minute",
      { minute: integer().notNull(), keyId: integer().notNull(), ...counters() },
      (t) => [primaryKey({ columns: [t.minute, t.keyId] })],
    ),
    usageHour: table("usage_hour", { hour: integer().notNull(), keyId: integer().notNull(), ...counters() }, (t) => [
      primaryKey({ columns: [t.hour, t.keyId] }),
    ]),
    /** `day`: days since 1970-01-01 in Seoul time (UTC+9). */
    usageDay: table(
      "usage_day",
      { day: integer().notNull(), keyId: integer().notNull(), ...counters(), ...charge() },
      (t) => [primaryKey({ columns: [t.day, t.keyId] })],
    ),
    usageModelHour: table("usage_model_hour", { hour: integer().notNull(), ...modelCounters() }, (t) => [
      primaryKey({ columns: [t.hour, t.keyId, t.model] }),
    ]),
    usageModelDay: table("usage_model_day", { day: integer().notNull(), ...modelCounters() }, (t) => [
      primaryKey({ columns: [t.day, t.keyId, t.model] }),
    ]),
    /**
     * The same by month in Seoul time, as the number of its first day. Triggers of the database keep it (see the migration): it
     * is exact while an earlier version, which does not know of it, counts beside this one.
     */
    usageModelMonth: table("usage_model_month", { month: integer().notNull(), ...modelCounters() }, (t) => [
      primaryKey({ columns: [t.month, t.keyId, t.model] }),
    ]),
    /** The last flush of each ledger, so that a flush that is sent again counts once. */
    usageFlushes: table("usage_flushes", {
      ledger: text().primaryKey(),
      flush: integer().notNull(),
      writtenAt: integer().notNull(),
    }),
    /** What backends store, by its id alone: whose it is, which backend has it, and when it was last used. */
    owned: table(
      "owned",
      { idHash: text().primaryKey(), keyId: integer().notNull(), backend: text(), usedAt: integer().notNull() },
      (t) => [index("owned_key").on(t.keyId), index("owned_time").on(t.usedAt)],
    ),
    /** The tokens that were counted of a stored response for a key, so that one that is read again counts once. */
    countedResponses: table(
      "counted_responses",
      {
        idHash: text().notNull(),
        keyId: integer().notNull(),
        inputTokens: integer().notNull(),
        outputTokens: integer().notNull(),
        countedAt: integer().notNull(),
      },
      (t) => [primaryKey({ columns: [t.idHash, t.keyId] }), index("counted_responses_time").on(t.countedAt)],
    ),
  };
}
