import { type Columns, sqliteColumns } from "./columns.ts";

// oxlint-disable-next-line typescript/explicit-function-return-type, typescript/explicit-module-boundary-types -- the tables' types are this function's result
export function defineTables({ table, identity, integer, real, text, boolean, primaryKey, index }: Columns) {
  const counters = () => ({
    requestCount: integer().notNull(),
    inputTokens: integer().notNull(),
    outputTokens: integer().notNull(),
  });
  const gpuReading = () => ({
    name: text().notNull(),
    powerDrawW: real(),
    tempC: integer(),
    memoryUsedMb: integer(),
    memoryTotalMb: integer(),
    utilizationPct: integer(),
  });

  return {
    keys: table("keys", {
      id: identity(),
      key: text().notNull().unique(),
      name: text().notNull(),
      isActive: boolean().notNull(),
      /** Epoch milliseconds, like every column that ends in At. */
      createdAt: integer().notNull(),
      lastUsedAt: integer(),
      ...counters(),
      expiresAt: integer(),
      /** JSON; null: the key may do everything. One column, so that the look-up of such a key costs one comparison. */
      rules: text(),
      owner: text(),
      note: text(),
      /** A JSON array. */
      tags: text(),
    }),
    /** Secrets that were replaced and are still accepted. */
    formerSecrets: table(
      "former_secrets",
      { key: text().primaryKey(), keyId: integer().notNull(), validUntil: integer().notNull() },
      (t) => [index("former_secrets_key").on(t.keyId)],
    ),
    /** The last names of deleted keys, which usage reports show. */
    deletedKeys: table("deleted_keys", { id: integer().primaryKey(), name: text().notNull() }),

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
    usageDay: table("usage_day", { day: integer().notNull(), keyId: integer().notNull(), ...counters() }, (t) => [
      primaryKey({ columns: [t.day, t.keyId] }),
    ]),
    /** The last flush of each ledger, so that a flush that is sent again counts once. */
    usageFlushes: table("usage_flushes", {
      ledger: text().primaryKey(),
      flush: integer().notNull(),
      writtenAt: integer().notNull(),
    }),
    /** The tokens that were counted for each response id, so that a response that is retrieved again counts once. */
    countedResponses: table(
      "counted_responses",
      {
        idHash: text().primaryKey(),
        inputTokens: integer().notNull(),
        outputTokens: integer().notNull(),
        countedAt: integer().notNull(),
      },
      (t) => [index("counted_responses_time").on(t.countedAt)],
    ),

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

    /** `id` is `recordedAt * 256 + gpuId`: unique, and the table is ordered by time without a second index. */
    gpuSamples: table("gpu_samples", { id: integer().primaryKey(), ...gpuReading() }),
    gpuLatest: table("gpu_latest", { gpuId: integer().primaryKey(), id: integer().notNull(), ...gpuReading() }),
    /** The highest total power of one push in each minute. Kept longer than the samples. */
    gpuPowerMinute: table("gpu_power_minute", { minute: integer().primaryKey(), powerDrawW: real().notNull() }),

    sessions: table("sessions", {
      idHash: text().primaryKey(),
      csrfToken: text().notNull(),
      username: text().notNull(),
      expiresAt: integer().notNull(),
    }),
    loginAttempts: table(
      "login_attempts",
      { id: identity(), address: text().notNull(), attemptedAt: integer().notNull() },
      (t) => [
        index("login_attempts_address").on(t.address, t.attemptedAt),
        index("login_attempts_time").on(t.attemptedAt),
      ],
    ),
    settings: table("settings", { name: text().primaryKey(), value: text().notNull() }),
  };
}

export type Tables = ReturnType<typeof defineTables>;

// drizzle-kit finds the tables by their exports.
export const {
  keys,
  formerSecrets,
  deletedKeys,
  usageMinute,
  usageHour,
  usageDay,
  usageFlushes,
  countedResponses,
  instances,
  admissions,
  keySeconds,
  keyRefusals,
  keyEndings,
  gpuSamples,
  gpuLatest,
  gpuPowerMinute,
  sessions,
  loginAttempts,
  settings,
} = defineTables(sqliteColumns);
