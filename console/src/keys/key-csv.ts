import { csv } from "../lib/csv.ts";
import type { Key } from "../queries.ts";
import { limitNames } from "../../../src/domain/limits.ts";

/** The API's list, with its field names. */
export function keyCsv(keys: readonly Key[]): string {
  const header = [
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
    "refused_today",
  ];
  const rows = keys.map((key) => [
    key.id,
    key.name,
    key.key,
    String(key.is_active),
    key.created_at,
    key.last_used_at ?? "",
    key.total_request_count,
    key.total_input_tokens,
    key.total_output_tokens,
    key.total_estimated_tokens,
    key.owner ?? "",
    key.note ?? "",
    key.tags.join(", "),
    key.scope,
    key.expires_at ?? "",
    key.allowed_models?.join(", ") ?? "",
    key.allowed_paths?.join(", ") ?? "",
    ...limitNames.map((name) => key[name] ?? ""),
    key.refused_today,
  ]);
  return csv(header, rows);
}
