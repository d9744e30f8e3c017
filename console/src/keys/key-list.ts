import { csvOf } from "../lib/csv.ts";
import { parseSort, type Sort } from "../lib/sort.ts";
import type { Key, Team, User } from "../queries.ts";
import { limitNames } from "../../../src/domain/limits.ts";

/** Whether a key is accepted: one that has expired is like an inactive one. */
export function isUsable(
  { is_active: isActive, expires_at: at }: Pick<Key, "is_active" | "expires_at">,
  now: number,
): boolean {
  return isActive && (at === null || Date.parse(at) > now);
}

export const keyColumns = {
  name: "ascending",
  created: "descending",
  used: "descending",
  requests: "descending",
  input: "descending",
  output: "descending",
} as const;

type Column = keyof typeof keyColumns;
export type KeySort = Sort<Column>;

/** Anything unknown sorts by creation. */
export const parseKeySort = (text: string | undefined): KeySort =>
  parseSort(text, keyColumns) ?? { column: "created", direction: "ascending" };

const byName = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

const compare: Record<Column, (a: Key, b: Key) => number> = {
  name: (a, b) => byName.compare(a.name, b.name),
  // The timestamps share one format and zone, so they sort as text; a key never used sorts before all of them.
  created: (a, b) => (a.created_at < b.created_at ? -1 : a.created_at === b.created_at ? 0 : 1),
  used: (a, b) => ((a.last_used_at ?? "") < (b.last_used_at ?? "") ? -1 : a.last_used_at === b.last_used_at ? 0 : 1),
  requests: (a, b) => a.total_request_count - b.total_request_count,
  input: (a, b) => a.total_input_tokens - b.total_input_tokens,
  output: (a, b) => a.total_output_tokens - b.total_output_tokens,
};

export function sortKeys(keys: readonly Key[], { column, direction }: KeySort): Key[] {
  const sign = direction === "ascending" ? 1 : -1;
  return keys.toSorted((a, b) => sign * compare[column](a, b) || a.id - b.id);
}

const csvColumns = [
  "id",
  "name",
  "key",
  "is_active",
  "created_at",
  "last_used_at",
  "total_request_count",
  "total_input_tokens",
  "total_output_tokens",
  "total_estimated_tokens",
  "owner",
  "note",
  "tags",
  "scope",
  "expires_at",
  "allowed_models",
  "allowed_paths",
  ...limitNames,
  "priority",
  "refused_today",
  "team_id",
  "users_from",
] as const;

/** The API's list, with its field names. */
export const keyCsv = (keys: readonly Key[]): string => csvOf(csvColumns, keys);

/** As an import reads them, and when they were seen last. */
export const userCsv = (users: readonly User[], teams: readonly Team[]): string =>
  csvOf(
    ["external", "name", "team", ...limitNames, "priority", "note", "tags", "is_active", "last_seen_at"],
    users.map((user) => ({ ...user, team: teams.find(({ id }) => id === user.team_id)?.name ?? null })),
  );

/** What follows in the tags that begin with a text. */
export const tagValues = (tags: readonly string[], prefix: string): string[] =>
  tags.flatMap((tag) => (tag.startsWith(prefix) && tag !== prefix ? [tag.slice(prefix.length).trim()] : []));
