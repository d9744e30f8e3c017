import { csv } from "./csv.ts";
import type { Key } from "./queries.ts";

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
  ]);
  return csv(header, rows);
}
