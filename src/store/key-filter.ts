import type { KeyId } from "../domain.ts";
import type { KeyFilter } from "./usage-ranges.ts";

/** Whether a key matches. Not in SQL: SQLite compares only ASCII letters without regard to case. */
export function createKeyMatcher(filter: KeyFilter, names: ReadonlyMap<KeyId, string>): (keyId: KeyId) => boolean {
  const search = filter.search?.trim().toLowerCase() ?? "";
  return (keyId) =>
    (filter.keyId === undefined || keyId === filter.keyId) &&
    (search === "" || (names.get(keyId) ?? "").toLowerCase().includes(search));
}
