import type { Columns } from "./columns.ts";

export function defineLimitTables({ table, identity, integer, text, primaryKey }: Columns) {
  return {
    /** The processes that hold leases. `beat` grows while a process lives. */
    instances: table("instances", { id: text().primaryKey(), beat: integer().notNull() }),
    /**
     * What each process holds for a key: the places and the reserved tokens of its requests in flight. `version` grows with
     * each write, so that one that arrives late changes nothing.
     */
    keyLeases: table(
      "key_leases",
      {
        keyId: integer().notNull(),
        instance: text().notNull(),
        version: integer().notNull(),
        places: integer().notNull(),
        tokens: integer().notNull(),
      },
      (t) => [primaryKey({ columns: [t.keyId, t.instance] })],
    ),
    /** What keys with limits used in each second of the last minute, by the writer, so that nobody waits for its row. */
    leaseSeconds: table(
      "lease_seconds",
      {
        keyId: integer().notNull(),
        /** Since the epoch. */
        second: integer().notNull(),
        writer: text().notNull(),
        requests: integer().notNull(),
        tokens: integer().notNull(),
      },
      (t) => [primaryKey({ columns: [t.keyId, t.second, t.writer] })],
    ),
    /** How many requests the limits of a key refused on a day in Seoul. */
    keyRefusals: table(
      "key_refusals",
      { day: integer().notNull(), keyId: integer().notNull(), requests: integer().notNull() },
      (t) => [primaryKey({ columns: [t.day, t.keyId] })],
    ),
    /** Keys whose running responses every process has to end. */
    keyEndings: table("key_endings", { id: identity(), keyId: integer().notNull(), endedAt: integer().notNull() }),
  };
}
