import { mapCounters, reconciledFields } from "../../domain/usage.ts";
import type { Columns } from "./columns.ts";

export function defineTrafficTables({ table, integer, text, primaryKey }: Columns) {
  const latency = () => ({
    model: text().notNull(),
    requestCount: integer().notNull(),
    firstByte: text().notNull(),
    duration: text().notNull(),
    tokensPerSecond: text().notNull(),
    queueWait: text().notNull().default(""),
  });
  const outcome = () => ({
    /** 0: requests without a key. */
    keyId: integer().notNull(),
    outcome: text().notNull(),
    /** Empty for a success. */
    code: text().notNull(),
    count: integer().notNull(),
    lastAt: integer().notNull(),
  });

  return {
    /** Histograms as text; see `domain/histogram.ts`. */
    latencyMinute: table("latency_minute", { minute: integer().notNull(), ...latency() }, (t) => [
      primaryKey({ columns: [t.minute, t.model] }),
    ]),
    latencyHour: table("latency_hour", { hour: integer().notNull(), ...latency() }, (t) => [
      primaryKey({ columns: [t.hour, t.model] }),
    ]),
    outcomeMinute: table("outcome_minute", { minute: integer().notNull(), ...outcome() }, (t) => [
      primaryKey({ columns: [t.minute, t.keyId, t.outcome, t.code] }),
    ]),
    outcomeHour: table("outcome_hour", { hour: integer().notNull(), ...outcome() }, (t) => [
      primaryKey({ columns: [t.hour, t.keyId, t.outcome, t.code] }),
    ]),
    /** What the backend reports to have processed, and what was counted in the same minutes. */
    reconciliationDay: table("reconciliation_day", {
      day: integer().primaryKey(),
      ...mapCounters(reconciledFields, () => integer().notNull()),
    }),
  };
}
