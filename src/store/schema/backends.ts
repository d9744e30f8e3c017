import { backendCountNames } from "../../domain/backends.ts";
import { mapCounters, reconciledFields } from "../../domain/usage.ts";
import type { Columns } from "./columns.ts";

export function defineBackendTables({ table, integer, text, primaryKey }: Columns) {
  return {
    /** What each backend was sent in a minute, and how it responded. */
    backendMinute: table(
      "backend_minute",
      {
        minute: integer().notNull(),
        backend: text().notNull(),
        ...mapCounters(backendCountNames, () => integer().notNull()),
        expectedTokens: integer().notNull().default(0),
        regretTokens: integer().notNull().default(0),
        /** A histogram as text; see `domain/histogram.ts`. */
        firstByte: text().notNull(),
      },
      (t) => [primaryKey({ columns: [t.minute, t.backend] })],
    ),
    /** Backends that get no new requests. */
    drainingBackends: table("draining_backends", {
      backend: text().primaryKey(),
      since: integer().notNull(),
      username: text().notNull(),
    }),
    /** The file of models that each process uses, and when it last said so. */
    catalogInstances: table("catalog_instances", {
      name: text().primaryKey(),
      fileHash: text().notNull(),
      seenAt: integer().notNull(),
    }),
    /** Like `reconciliation_day`, by backend, if there is a file of models. */
    reconciliationBackendDay: table(
      "reconciliation_backend_day",
      {
        day: integer().notNull(),
        backend: text().notNull(),
        ...mapCounters(reconciledFields, () => integer().notNull()),
      },
      (t) => [primaryKey({ columns: [t.day, t.backend] })],
    ),
  };
}
