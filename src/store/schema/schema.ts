// The tables of both engines, defined once over the column builders of each (`columns.ts`), and their migrations.
//
// It keeps true: both engines have the same tables and columns, but for the staged flushes, which SQLite alone has. The
// migrations are generated from this file; `migrations.ts` says which of them a database lacks, and
// refuses what is older than the first one, or newer. It knows no query.
// Removed: the many migrations before, folded into one for each engine.

import { type Columns, sqliteColumns } from "./columns.ts";
import type { Role } from "../../domain/changes.ts";
import { backendCountNames } from "../../domain/backends.ts";
import { latencyHistograms } from "../../domain/histogram.ts";
import { mapCounters, reconciledFields, chargeFields, countedParts, sumFields } from "../../domain/usage.ts";
import { type NotNull, sql } from "drizzle-orm";
import { type RequestColumnFields, columnFields } from "../../domain/request-fields.ts";

export function defineTables(columns: Columns) {
  const { table, identity, integer, text, boolean, index } = columns;
  return {
    keys: table("keys", {
      id: identity(),
      /** What clients send, stored as it is. */
      key: text().notNull().unique(),
      name: text().notNull(),
      isActive: boolean().notNull(),
      /** Epoch milliseconds, like every column that ends in At. */
      createdAt: integer().notNull(),
      /** Moves at most once a minute; null before the first use. */
      lastUsedAt: integer(),
      ...defineCounters(columns),
      /** Charged to its limits of tokens where the backend reported none. */
      estimatedTokens: integer().notNull().default(0),
      /** From then on the key is like an inactive one; null: never. */
      expiresAt: integer(),
      /** JSON; null: the key may do everything. One column, so that the look-up of such a key costs one comparison. */
      rules: text(),
      owner: text(),
      note: text(),
      /** A JSON array. */
      tags: text(),
      teamId: integer(),
      /** Whose own it is: it counts for that user, whatever it is sent with. Null: an operator made it. */
      userId: integer(),
    }),
    /** Secrets that were replaced and are still accepted. */
    formerSecrets: table(
      "former_secrets",
      { key: text().primaryKey(), keyId: integer().notNull(), validUntil: integer().notNull() },
      (t) => [index("former_secrets_key").on(t.keyId)],
    ),
    /** The last names of deleted keys, teams and users (`SubjectId`), which usage reports show. */
    deletedKeys: table("deleted_keys", { id: integer().primaryKey(), name: text().notNull() }),

    ...defineUsageTables(columns),
    ...defineTrafficTables(columns),
    ...defineRequestLogTables(columns),
    ...defineLimitTables(columns),
    ...defineBackendTables(columns),
    ...defineGpuTables(columns),
    ...defineAccountTables(columns),
  };
}

export type Tables = ReturnType<typeof defineTables>;

export const tables = defineTables(sqliteColumns);

function defineAccountTables({ table, identity, integer, text, index }: Columns) {
  return {
    sessions: table("sessions", {
      idHash: text().primaryKey(),
      csrfToken: text().notNull(),
      username: text().notNull(),
      expiresAt: integer().notNull(),
      createdAt: integer(),
      /** From where the login came. */
      address: text(),
      client: text(),
      /** Who signed in at a provider; null: the administrator, by the password. */
      userId: integer(),
      /** Null: admin. */
      role: text().$type<Role>(),
      /** What the provider calls the session. */
      providerSid: text(),
    }),
    loginAttempts: table(
      "login_attempts",
      { id: identity(), address: text().notNull(), attemptedAt: integer().notNull() },
      (t) => [
        index("login_attempts_address").on(t.address, t.attemptedAt),
        index("login_attempts_time").on(t.attemptedAt),
      ],
    ),
    /** What programs send to the admin API instead of a session. */
    apiTokens: table("api_tokens", {
      id: identity(),
      hash: text().notNull().unique(),
      /** Its first characters, to tell it from others. */
      head: text().notNull(),
      name: text().notNull(),
      role: text().$type<Exclude<Role, "member">>().notNull(),
      createdAt: integer().notNull(),
      /** Null: never. */
      expiresAt: integer(),
      /** Moves at most once a minute. */
      lastUsedAt: integer(),
    }),
    /** Who changed what; see `accounts/audit.ts`. */
    audit: table(
      "audit",
      {
        id: identity(),
        at: integer().notNull(),
        actor: text().notNull(),
        role: text(),
        address: text(),
        action: text().notNull(),
        /** `noun/id` */
        target: text().notNull(),
        /** JSON of what changed, at most 4 KiB, cut off where it is longer. */
        before: text(),
        after: text(),
        requestId: text(),
        changeId: text(),
        count: integer().notNull(),
      },
      (t) => [index("audit_time").on(t.at)],
    ),
    settings: table("settings", { name: text().primaryKey(), value: text().notNull() }),
  };
}

function defineBackendTables({ table, integer, text, primaryKey }: Columns) {
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
    /** What is wrong, as each process sees it, and was in the last days. It is said again while it stands. */
    states: table(
      "states",
      {
        process: text().notNull(),
        kind: text().notNull(),
        object: text().notNull(),
        since: integer().notNull(),
        /** Null: it stands. */
        until: integer(),
        /** By the database's clock. */
        seenAt: integer().notNull(),
        what: text().notNull(),
        count: integer(),
        silencedUntil: integer(),
        silencedWhy: text(),
        silencedBy: text(),
        /** 1: a notice told that it came; 2: that it went, too. */
        told: integer().notNull().default(0),
      },
      (t) => [primaryKey({ columns: [t.process, t.kind, t.object, t.since] })],
    ),
    /** What is posted to NOTICE_URL. */
    notices: table("notices", {
      id: text().primaryKey(),
      kind: text().notNull(),
      createdAt: integer().notNull(),
      body: text().notNull(),
      tries: integer().notNull(),
      /** Null: it was accepted, or given up. */
      nextAt: integer(),
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

function defineGpuTables({ table, integer, real, text, primaryKey }: Columns) {
  const gpuReading = () => ({
    name: text().notNull(),
    powerDrawW: real(),
    tempC: integer(),
    memoryUsedMb: integer(),
    memoryTotalMb: integer(),
    utilizationPct: integer(),
  });

  /** Sums and counts are over the readings that have the value; the mean is the sum by the count. Sums are real, so that none overflows. */
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
  };
}

function defineLimitTables({ table, identity, integer, text, boolean, primaryKey, index, uniqueIndex }: Columns) {
  return {
    /** Teams and users. As `SubjectId`, in the columns of keys, they are the numbers below 0. */
    subjects: table(
      "subjects",
      {
        id: identity(),
        kind: text().$type<"team" | "user">().notNull(),
        name: text().notNull(),
        note: text(),
        /** A JSON array. */
        tags: text(),
        /** Limits as JSON; null: none. */
        rules: text(),
        /** When a user was first seen. */
        createdAt: integer().notNull(),
        /** Who says who the user is, `key:7` or a name that several keys give; null for a team, like what follows. */
        source: text(),
        /** The user's id there; empty: all that are too many for the key. */
        external: text(),
        /** With which it was first seen. */
        keyId: integer(),
        teamId: integer(),
        /** Whose counts and limits hold for it. */
        sameAs: integer(),
        isActive: boolean().notNull().default(true),
        /** An operator made or changed it: it makes room for no other. */
        isKept: boolean().notNull().default(false),
        /** Moves at most once a minute; null before the first time. */
        lastSeenAt: integer(),
        /** At a provider of OpenID Connect, the last time. */
        signedInAt: integer(),
        /** Encrypted. */
        refreshToken: text(),
        refreshCheckedAt: integer(),
        /** Each sign-in sets the team; an operator who sets it ends that. */
        teamByProvider: boolean().notNull().default(true),
      },
      (t) => [uniqueIndex("subjects_external").on(t.source, t.external), index("subjects_key").on(t.keyId)],
    ),
    /** The processes that hold leases. `beat` grows while a process lives. */
    instances: table("instances", { id: text().primaryKey(), beat: integer().notNull() }),
    /**
     * What each process holds for a key or team: the places and the reserved tokens of its requests in flight. `version` grows with
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
    /** What keys and teams with limits used in each second of the last minute, by the writer, so that nobody waits for its row. */
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
    /** How many requests the limits of a key or team refused on a day in Seoul. */
    keyRefusals: table(
      "key_refusals",
      { day: integer().notNull(), keyId: integer().notNull(), requests: integer().notNull() },
      (t) => [primaryKey({ columns: [t.day, t.keyId] })],
    ),
    /** Keys whose running responses every process has to end. */
    keyEndings: table("key_endings", { id: identity(), keyId: integer().notNull(), endedAt: integer().notNull() }),
  };
}

function defineRequestLogTables({ table, rowId, integer, text, index }: Columns) {
  return {
    /** One row for each request, by id in the order of their commits. Times end in Us: microseconds. */
    requestLog: table(
      "request_log",
      {
        id: rowId(),
        ...fieldColumns({ integer, text }),
      },
      (t) => [
        index("request_log_key").on(t.keyId, t.id),
        index("request_log_request_id").on(t.requestId),
        index("request_log_failed")
          .on(t.id)
          .where(sql`is_failed = 1`),
      ],
    ),
  };
}

type FieldColumns = { [Name in keyof RequestColumnFields]: ColumnOf<RequestColumnFields[Name]> };
type ColumnOf<Field extends { kind: string }> = Field extends { nullable: true }
  ? BuilderOf<Field["kind"]>
  : NotNull<BuilderOf<Field["kind"]>>;
type BuilderOf<Kind extends string> = ReturnType<Columns[Kind extends "text" ? "text" : "integer"]>;

function fieldColumns({ integer, text }: Pick<Columns, "integer" | "text">): FieldColumns {
  const columns = columnFields.map(({ column, kind, nullable }) => {
    const builder = kind === "text" ? text() : integer();
    return [column, nullable ? builder : builder.notNull()];
  });
  return Object.fromEntries(columns) as FieldColumns;
}

function defineTrafficTables({ table, integer, text, primaryKey }: Columns) {
  const latency = () => ({
    model: text().notNull(),
    requestCount: integer().notNull(),
    ...mapCounters(latencyHistograms, () => text().notNull()),
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

/** The sums of usage that a key, a minute, an hour or a day has. */
function defineCounters({ integer }: Columns) {
  return mapCounters(sumFields, () => integer().notNull());
}

function defineUsageTables(columns: Columns) {
  const { table, integer, text, primaryKey, index } = columns;
  const counters = () => defineCounters(columns);
  /** What limits compare beside the input and output. */
  const charge = () => mapCounters(chargeFields, () => integer().notNull().default(0));
  const modelCounters = () => ({
    keyId: integer().notNull(),
    /** Empty if the requests named no model. */
    model: text().notNull(),
    /** The key's when the requests began; 0: none. */
    teamId: integer().notNull().default(0),
    /** Whose requests they were; 0: nobody's in particular. */
    userId: integer().notNull().default(0),
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
    /** `day`: days since 1970-01-01 in Seoul time (UTC+9). Of keys, and of teams, which limits are compared with (`SubjectId`). */
    usageDay: table(
      "usage_day",
      { day: integer().notNull(), keyId: integer().notNull(), ...counters(), ...charge() },
      (t) => [primaryKey({ columns: [t.day, t.keyId] })],
    ),
    usageModelHour: table("usage_model_hour", { hour: integer().notNull(), ...modelCounters() }, (t) => [
      primaryKey({ columns: [t.hour, t.keyId, t.model, t.teamId, t.userId] }),
    ]),
    usageModelDay: table("usage_model_day", { day: integer().notNull(), ...modelCounters() }, (t) => [
      primaryKey({ columns: [t.day, t.keyId, t.model, t.teamId, t.userId] }),
    ]),
    /**
     * The same by month in Seoul time, as the number of its first day. Triggers of the database keep it (see the migration): it
     * is exact while an earlier version, which does not know of it, counts beside this one.
     */
    usageModelMonth: table("usage_model_month", { month: integer().notNull(), ...modelCounters() }, (t) => [
      primaryKey({ columns: [t.month, t.keyId, t.model, t.teamId, t.userId] }),
    ]),
    /** Owner and tags of keys in which these have changed, or that were deleted, from a day in Seoul time on; 0: from the first. */
    keyLabels: table(
      "key_labels",
      { keyId: integer().notNull(), fromDay: integer().notNull(), owner: text(), tags: text() },
      (t) => [primaryKey({ columns: [t.keyId, t.fromDay] })],
    ),
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
