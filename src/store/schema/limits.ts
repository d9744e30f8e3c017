import type { Columns } from "./columns.ts";

// oxlint-disable-next-line typescript/explicit-function-return-type, typescript/explicit-module-boundary-types -- the tables' types are this function's result
export function defineLimitTables({ table, identity, integer, text, primaryKey }: Columns) {
  return {
    /** The processes that hold admissions. `beat` grows while a process lives. */
    instances: table("instances", { id: text().primaryKey(), beat: integer().notNull() }),
    /** The requests in flight of keys with limits: each holds a place, and the tokens that are reserved for it. */
    admissions: table(
      "admissions",
      {
        keyId: integer().notNull(),
        instance: text().notNull(),
        number: integer().notNull(),
        tokens: integer().notNull(),
      },
      (t) => [primaryKey({ columns: [t.keyId, t.instance, t.number] })],
    ),
    /** What keys with limits used in each second of the last minute. `second`: since the epoch. */
    keySeconds: table(
      "key_seconds",
      {
        keyId: integer().notNull(),
        second: integer().notNull(),
        requests: integer().notNull(),
        tokens: integer().notNull(),
      },
      (t) => [primaryKey({ columns: [t.keyId, t.second] })],
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
