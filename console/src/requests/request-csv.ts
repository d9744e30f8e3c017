import { counters } from "../lib/counters.ts";
import { csv } from "../lib/csv.ts";
import type { LoggedRequest } from "./queries.ts";

const columns = [
  "ended_at",
  "request_id",
  "key_id",
  "key_name",
  "address",
  "client",
  "class",
  "method",
  "path",
  "model_asked",
  "model_sent",
  "backend",
  "status",
  "outcome",
  "code",
  "cause",
  "streamed",
  ...counters,
  "estimated_tokens",
  "uncounted",
  "queue_ms",
  "upstream_ms",
  "first_byte_ms",
  "duration_ms",
  "response_bytes",
  "changes",
  "max_tokens_from",
  "max_tokens_to",
  "sends",
  "reason",
  "expected_cached_tokens",
  "conversation",
  "cache_loss",
] as const;

/** The API's list, with its field names; a value that is not known is empty. */
export const requestCsv = (requests: readonly LoggedRequest[]): string =>
  csv(
    columns,
    requests.map((request) => columns.map((column) => cell(request[column]))),
  );

function cell(value: LoggedRequest[(typeof columns)[number]]): string | number {
  if (value === null) return "";
  if (Array.isArray(value)) return value.join(" ");
  return typeof value === "boolean" ? String(value) : value;
}
