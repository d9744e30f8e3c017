import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { KeyFilter } from "./contract.ts";
import type { KeyId } from "../../domain/keys.ts";

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
