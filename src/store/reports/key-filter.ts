import { gt, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { KeyFilter } from "./contract.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { Engine } from "../engine/engine.ts";

/** A condition for the column of a key's id. */
export type KeyCondition = (column: SQLWrapper) => SQL;

/** Names are not compared in SQL: SQLite ignores the case of ASCII letters only. */
export function keyCondition(filter: KeyFilter, names: ReadonlyMap<KeyId, string>): KeyCondition {
  const { keyId, hiddenIds } = filter;
  const search = filter.search?.trim().toLowerCase() ?? "";
  const matches = (id: KeyId): boolean => (names.get(id) ?? "").toLowerCase().includes(search);
  const candidates = keyId === undefined ? [...names.keys()] : [keyId];
  const ids = search === "" && keyId === undefined ? undefined : candidates.filter(matches);
  return (column) => {
    const isShown = hiddenIds.length === 0 ? sql`1 = 1` : sql`${column} not in ${hiddenIds}`;
    if (ids === undefined) return isShown;
    return ids.length === 0 ? sql`1 = 0` : sql`${column} in ${ids} and ${isShown}`;
  };
}

/** The names of all keys; a deleted key has its last name. */
export async function readKeyNames({ db, tables: { keys, deletedKeys } }: Engine): Promise<Map<KeyId, string>> {
  const deleted = await db.select().from(deletedKeys).where(gt(deletedKeys.id, 0));
  const existing = await db.select({ id: keys.id, name: keys.name }).from(keys);
  return new Map([...deleted, ...existing].map(({ id, name }) => [id, name]));
}

/** The name of a key as JSON. */
export type GetKeyName = (keyId: KeyId) => string;

/** Reads all names once per report, and again only if a row has a newer key. */
export function createNameReader(engine: Engine): (rows: readonly { keyId: KeyId }[]) => Promise<GetKeyName> {
  let names = new Map<KeyId, string>();
  return async (found) => {
    if (found.some(({ keyId }) => !names.has(keyId))) {
      names = new Map(Array.from(await readKeyNames(engine), ([id, name]) => [id, JSON.stringify(name)]));
    }
    return (keyId) => names.get(keyId) ?? '""';
  };
}
