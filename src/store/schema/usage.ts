import { chargeFields, countedParts, mapCounters, sumFields } from "../../domain/usage.ts";
import type { Columns } from "./columns.ts";

/** The sums of usage that a key, a minute, an hour or a day has. */
// oxlint-disable-next-line typescript/explicit-function-return-type, typescript/explicit-module-boundary-types -- the columns' types are this function's result
export function defineCounters({ integer }: Columns) {
  return mapCounters(sumFields, () => integer().notNull());
}

// oxlint-disable-next-line typescript/explicit-function-return-type, typescript/explicit-module-boundary-types -- the tables' types are this function's result
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
    /** Stored responses, files and batches by key: whose they are and which backend holds them, and the tokens that were counted, so that one that is read again counts once. */
    countedResponses: table(
      "counted_responses",
      {
        idHash: text().notNull(),
        /** 0 for what was counted before version 0.2, of whichever key. */
        keyId: integer().notNull(),
        /** How often the key created one under this id; 0 if it only reads one that was created elsewhere. */
        creates: integer().notNull(),
        /** When the backend made the latest, in its own seconds since the epoch; null if it did not say. */
        madeAt: integer(),
        inputTokens: integer().notNull(),
        outputTokens: integer().notNull(),
        /** Charged for what its creates did not report, until a read reports it. */
        estimatedTokens: integer().notNull().default(0),
        countedAt: integer().notNull(),
        /** The name of the backend that holds the latest; null if there was one backend only. */
        backend: text(),
      },
      (t) => [primaryKey({ columns: [t.idHash, t.keyId] }), index("counted_responses_time").on(t.countedAt)],
    ),
  };
}
