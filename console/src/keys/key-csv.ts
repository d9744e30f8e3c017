import { csvOf } from "../lib/csv.ts";
import type { Key } from "../queries.ts";
import { limitNames } from "../../../src/domain/limits.ts";

const columns = [
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
  "team_id",
] as const;

/** The API's list, with its field names. */
export const keyCsv = (keys: readonly Key[]): string => csvOf(columns, keys);
