import { sql } from "drizzle-orm";
import { type Columns, sqliteColumns } from "./columns.ts";

// oxlint-disable-next-line typescript/explicit-function-return-type, typescript/explicit-module-boundary-types -- the tables' types are this function's result
export function defineTables({ table, identity, rowId, integer, real, text, boolean, primaryKey, index }: Columns) {
  const counters = () => ({
    requestCount: integer().notNull(),
    inputTokens: integer().notNull(),
    outputTokens: integer().notNull(),
  });
  const modelCounters = () => ({
    keyId: integer().notNull(),
    /** Empty if the requests named no model. */
    model: text().notNull(),
    ...counters(),
    cachedInputTokens: integer().notNull(),
    /** Of the cached input, what is not part of the input. */
    cachedBesideInputTokens: integer().notNull(),
    reasoningTokens: integer().notNull(),
  });
  const latency = () => ({
    model: text().notNull(),
    requestCount: integer().notNull(),
    firstByte: text().notNull(),
    duration: text().notNull(),
    tokensPerSecond: text().notNull(),
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
  const gpuReading = () => ({
    name: text().notNull(),
    powerDrawW: real(),
    tempC: integer(),
    memoryUsedMb: integer(),
    memoryTotalMb: integer(),
    utilizationPct: integer(),
  });

  /** Of the readings that have the value; the mean is the sum by the count. Sums are real, so that none overflows. */
  const gpuSums = () => ({
    powerSum: real().notNull(),
    powerCount: integer().notNull(),
    powerMax: real(),
    powerLast: real(),
    tempSum: real().notNull(),
    tempCount: integer().notNull(),
    tempMax: integer(),
    tempLast: integer(),
    memorySum: real().notNull(),
    memoryCount: integer().notNull(),
    memoryMax: integer(),
    memoryLast: integer(),
    utilizationSum: real().notNull(),
    utilizationCount: integer().notNull(),
    utilizationMax: integer(),
    utilizationLast: integer(),
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
    usageModelHour: table("usage_model_hour", { hour: integer().notNull(), ...modelCounters() }, (t) => [
      primaryKey({ columns: [t.hour, t.keyId, t.model] }),
    ]),
    usageModelDay: table("usage_model_day", { day: integer().notNull(), ...modelCounters() }, (t) => [
      primaryKey({ columns: [t.day, t.keyId, t.model] }),
    ]),
    /** Histograms as text; see `histogram.ts`. */
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
    /** What the backend says it processed, beside what was counted in the same minutes. */
    reconciliationDay: table("reconciliation_day", {
      day: integer().primaryKey(),
      generatedTokens: integer().notNull(),
      promptTokens: integer().notNull(),
      countedOutputTokens: integer().notNull(),
      countedInputTokens: integer().notNull(),
    }),
    /** Responses that should have reported tokens and did not. */
    tokenlessHour: table(
      "tokenless_hour",
      {
        hour: integer().notNull(),
        keyId: integer().notNull(),
        model: text().notNull(),
        path: text().notNull(),
        requestCount: integer().notNull(),
        streamedCount: integer().notNull(),
      },
      (t) => [primaryKey({ columns: [t.hour, t.keyId, t.model, t.path] })],
    ),
    /** One row for each request, by id in the order of their commits. Times end in Us: microseconds. */
    requestLog: table(
      "request_log",
      {
        id: rowId(),
        endedAt: integer().notNull(),
        requestId: text().notNull(),
        keyId: integer(),
        address: text().notNull(),
        client: text(),
        method: text().notNull(),
        path: text().notNull(),
        modelAsked: text(),
        modelSent: text(),
        backend: text(),
        status: integer().notNull(),
        outcome: text().notNull(),
        code: text(),
        cause: text(),
        /** Bits; see `request-row.ts`. */
        flags: integer().notNull(),
        inputTokens: integer(),
        outputTokens: integer(),
        cachedInputTokens: integer(),
        reasoningTokens: integer(),
        queueUs: integer(),
        upstreamUs: integer(),
        firstByteUs: integer(),
        durationUs: integer().notNull(),
        responseBytes: integer(),
        maxTokensFrom: integer(),
        maxTokensTo: integer(),
        /** 1 if the request did not complete with a status below 400. */
        isFailed: integer().notNull(),
      },
      (t) => [
        index("request_log_key").on(t.keyId, t.id),
        index("request_log_request_id").on(t.requestId),
        index("request_log_failed")
          .on(t.id)
          .where(sql`is_failed = 1`),
      ],
    ),
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
    gpuLatest: table("gpu_latest", {
      gpuId: integer().primaryKey(),
      id: integer().notNull(),
      ...gpuReading(),
      /** The sender's name; null if it sent none. */
      host: text(),
      /** When that host began to send this GPU. */
      hostChangedAt: integer(),
      /** The host before it, if that one had begun shortly before: then both send this GPU. */
      otherHost: text(),
    }),
    gpuMinute: table("gpu_minute", { minute: integer().notNull(), gpuId: integer().notNull(), ...gpuSums() }, (t) => [
      primaryKey({ columns: [t.minute, t.gpuId] }),
    ]),
    /** The hours that are over. `powerSum` and `powerCount` are of the means of their minutes, so that energy is exact. */
    gpuHour: table("gpu_hour", { hour: integer().notNull(), gpuId: integer().notNull(), ...gpuSums() }, (t) => [
      primaryKey({ columns: [t.hour, t.gpuId] }),
    ]),
    /** All GPUs together. Kept as long as `gpuMinute`. */
    gpuPowerMinute: table("gpu_power_minute", {
      minute: integer().primaryKey(),
      /** The highest total of one push. */
      powerDrawW: real().notNull(),
      /** The sum of the GPUs' means in this minute; null if none reported its power. */
      meanPowerDrawW: real(),
    }),

    sessions: table("sessions", {
      idHash: text().primaryKey(),
      csrfToken: text().notNull(),
      username: text().notNull(),
      expiresAt: integer().notNull(),
      createdAt: integer(),
      /** Of the login. */
      address: text(),
      client: text(),
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
  usageModelHour,
  usageModelDay,
  latencyMinute,
  latencyHour,
  outcomeMinute,
  outcomeHour,
  tokenlessHour,
  reconciliationDay,
  requestLog,
  usageFlushes,
  countedResponses,
  instances,
  admissions,
  keySeconds,
  keyRefusals,
  keyEndings,
  gpuSamples,
  gpuLatest,
  gpuMinute,
  gpuHour,
  gpuPowerMinute,
  sessions,
  loginAttempts,
  settings,
} = defineTables(sqliteColumns);
