import { Database } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { listPending } from "../schema/migrations.ts";
import { readMigrations } from "../schema/migrations.ts" with { type: "macro" };
import { toStorageError, StorageError } from "../storage-error.ts";
import { requireAccess, requireNotLost, requireNotMoved } from "./database-file.ts";
import { listApplied } from "./migrate.ts";
import type { DatabaseState } from "../engine/contract.ts";

const busyTimeoutMs = 2000;

/** `quick` does not compare indexes with their tables. Either reads the whole file. */
type Thoroughness = "quick" | "full";

/**
 * Reads a database without changing it, also while a server uses it. Blocks until the whole file is read.
 * @throws StorageError if it is damaged, or if a newer version of this program wrote it, or another program
 */
export function inspectDatabase(file: string, thoroughness: Thoroughness): DatabaseState {
  using client = new Database(file, { readonly: true, strict: true });
  client.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
  const pendingMigrations = listPending(listApplied(client), readMigrations("migrations"), true).length;
  const damage = findDamage(client, thoroughness);
  if (damage !== undefined) throw new StorageError(`the database is damaged; restore a backup (${damage})`);
  const used = client.query<{ at: number | null }, []>("SELECT max(last_used_at) AS at FROM keys").get();
  return { bytes: statSync(file).size, pendingMigrations, lastUsedAt: used?.at ?? undefined };
}

/** Blocks until the whole file is read. */
export function findDamage(client: Database, thoroughness: Thoroughness): string | undefined {
  const pragma = thoroughness === "full" ? "integrity_check" : "quick_check";
  const [problem] = Object.values(client.query<Record<string, string>, []>(`PRAGMA ${pragma}(1)`).get() ?? {});
  return problem === "ok" ? undefined : problem;
}

/**
 * Inspects the database of a data folder, and whether this user can write there.
 * @param inspect calls `inspectDatabase` where it may block
 * @returns undefined if the first start has yet to create it
 * @throws StorageError if no server could start with it
 */
export async function inspectDataFolder(
  file: string,
  inspect: (file: string) => Promise<DatabaseState>,
): Promise<DatabaseState | undefined> {
  try {
    requireNotMoved(file);
    const bytes = requireNotLost(file) ?? 0;
    if (!existsSync(dirname(file))) return undefined;
    requireAccess(file);
    if (bytes === 0) return undefined;
    return await inspect(file);
  } catch (error) {
    throw toStorageError(error);
  }
}
