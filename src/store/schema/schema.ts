// The tables of both engines, defined once over the column builders of each (`columns.ts`), and their migrations.
//
// It keeps true: both engines have the same tables and columns, but for the staged flushes, which SQLite alone has. The
// migrations are generated from this file; `migrations.ts` says which of them a database lacks, knows the steps from
// builds before to the first one, and refuses what is older or newer. It knows no query.
// Removed: the many migrations before, folded into one for each engine.

import { defineBackendTables } from "./backends.ts";
import { type Columns, sqliteColumns } from "./columns.ts";
import { defineGpuTables } from "./gpu.ts";
import { defineLimitTables } from "./limits.ts";
import { defineRequestLogTables } from "./requests.ts";
import { defineTrafficTables } from "./traffic.ts";
import { defineCounters, defineUsageTables } from "./usage.ts";

export function defineTables(columns: Columns) {
  const { table, identity, integer, text, boolean, index } = columns;
  return {
    keys: table("keys", {
      id: identity(),
      key: text().notNull().unique(),
      name: text().notNull(),
      isActive: boolean().notNull(),
      /** Epoch milliseconds, like every column that ends in At. */
      createdAt: integer().notNull(),
      lastUsedAt: integer(),
      ...defineCounters(columns),
      /** Charged to its limits of tokens where the backend reported none. */
      estimatedTokens: integer().notNull().default(0),
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

    ...defineUsageTables(columns),
    ...defineTrafficTables(columns),
    ...defineRequestLogTables(columns),
    ...defineLimitTables(columns),
    ...defineBackendTables(columns),
    ...defineGpuTables(columns),

    sessions: table("sessions", {
      idHash: text().primaryKey(),
      csrfToken: text().notNull(),
      username: text().notNull(),
      expiresAt: integer().notNull(),
      createdAt: integer(),
      /** From where the login came. */
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
  usageModelMonth,
  latencyMinute,
  latencyHour,
  outcomeMinute,
  outcomeHour,
  reconciliationDay,
  requestLog,
  usageFlushes,
  owned,
  countedResponses,
  instances,
  keyLeases,
  leaseSeconds,
  keyRefusals,
  keyEndings,
  backendMinute,
  drainingBackends,
  catalogInstances,
  reconciliationBackendDay,
  gpuSamples,
  gpuLatest,
  gpuMinute,
  gpuHour,
  gpuPowerMinute,
  sessions,
  loginAttempts,
  settings,
} = defineTables(sqliteColumns);
