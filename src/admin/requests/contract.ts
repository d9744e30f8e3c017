import { type Static, type TInteger, type TOptional, type TString, Type as t } from "@sinclair/typebox";
import type { Outcome } from "../../domain/requests.ts";
import type { RequestChange } from "../../domain/requests.ts";
import { count, integerParameter, nullable, timestamp } from "../http/schemas.ts";

const outcomes = [
  "completed",
  "client_left",
  "shutdown",
  "upstream_failed",
  "timed_out",
  "refused",
  "revoked",
  "ended_by_admin",
] as const;

const changeKinds = [
  "model",
  "max_tokens",
  "system_prompt_effort",
  "system_prompt_language",
  "thinking",
  "stream_usage",
] as const;

const milliseconds = t.Number({ minimum: 0 });
export const change = t.Unsafe<RequestChange>(t.Union(changeKinds.map((kind) => t.Literal(kind))));

/** A parameter of text. Its length bounds what a filter costs. */
const textParameter = (name: string): TOptional<TString> =>
  t.Optional(
    t.String({
      minLength: 1,
      maxLength: 512,
      error: `${name} must have from 1 to 512 characters`,
      description: "Exact",
    }),
  );

export const timeMessage = (name: string): string => `${name} must be a time such as 2026-05-01T12:00:00Z`;
const timeParameter = (name: string): TOptional<TString> =>
  t.Optional(
    t.String({
      pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,3})?)?(Z|[+-]\\d\\d:\\d\\d)$",
      error: timeMessage(name),
    }),
  );

const optionalInteger = (name: string, maximum: number, minimum = 0): TOptional<TInteger> =>
  t.Optional(t.Integer({ minimum, maximum, error: `${name} must be an integer from ${minimum} to ${maximum}` }));

const maxInteger = Number.MAX_SAFE_INTEGER;

const filters = {
  key_id: optionalInteger("key_id", maxInteger, 1),
  model: textParameter("model"),
  status: t.Optional(
    t.String({ pattern: "^[1-5](xx|\\d\\d)$", error: "status must be a status such as 404, or a class such as 5xx" }),
  ),
  outcome: t.Optional(
    t.Unsafe<Outcome>(
      t.Union(
        outcomes.map((name) => t.Literal(name)),
        { error: `outcome must be one of ${outcomes.join(", ")}` },
      ),
    ),
  ),
  failed: t.Optional(t.Literal("true", { error: "failed must be true, or left out" })),
  path: textParameter("path"),
  address: textParameter("address"),
  request_id: textParameter("request_id"),
  min_duration_ms: optionalInteger("min_duration_ms", 2_000_000_000),
};
export const requestFilterQuery = t.Object(filters);
export type RequestFilterQuery = Static<typeof requestFilterQuery>;

export const requestsQuery = t.Object({
  ...filters,
  since: timeParameter("since"),
  until: timeParameter("until"),
  limit: integerParameter("limit", { minimum: 1, maximum: 200, default: 50 }),
  cursor: t.Optional(
    t.String({ pattern: "^[\\da-z]{1,11}\\.[\\da-z]{1,11}$", error: "cursor must be one that this endpoint returned" }),
  ),
});
export type RequestsQuery = Static<typeof requestsQuery>;

export const requestBody = t.Object({
  id: t.Integer(),
  ended_at: timestamp,
  request_id: t.String(),
  key_id: nullable(t.Integer()),
  key_name: nullable(t.String()),
  address: t.String(),
  client: nullable(t.String({ description: "The first word of User-Agent" })),
  method: t.String(),
  path: t.String(),
  model_asked: nullable(t.String()),
  model_sent: nullable(t.String()),
  backend: nullable(t.String({ description: "Null if the request was not sent to the backend" })),
  status: t.Integer(),
  outcome: t.String(),
  code: nullable(t.String()),
  cause: nullable(t.String()),
  streamed: t.Boolean(),
  input_tokens: nullable(count),
  output_tokens: nullable(count),
  cached_input_tokens: nullable(count),
  reasoning_tokens: nullable(count),
  queue_ms: nullable(milliseconds),
  upstream_ms: nullable(milliseconds),
  first_byte_ms: nullable(milliseconds),
  duration_ms: milliseconds,
  response_bytes: nullable(count),
  changes: t.Array(change),
  max_tokens_from: nullable(count),
  max_tokens_to: nullable(count),
});
export type RequestBody = Static<typeof requestBody>;

export const runningBody = t.Object({
  requests: t.Array(
    t.Object({
      id: t.String(),
      request_id: t.String(),
      key_id: nullable(t.Integer()),
      key_name: nullable(t.String()),
      address: t.String(),
      method: t.String(),
      path: t.String(),
      model: nullable(t.String()),
      backend: nullable(t.String()),
      state: t.Union([t.Literal("receiving"), t.Literal("waiting"), t.Literal("running")], {
        description: "Its body is being read, it waits in the queue or for the backend, or the response flows",
      }),
      started_at: timestamp,
      age_ms: milliseconds,
      received_bytes: count,
      output_tokens: nullable(count),
    }),
    { description: "Oldest first" },
  ),
  more: t.Boolean({ description: "There are more than are listed" }),
});
export type RunningBody = Static<typeof runningBody>;

export const requestsBody = t.Object({
  requests: t.Array(requestBody, { description: "Latest first" }),
  next_cursor: nullable(t.String({ description: "For the following page, which may exist even if this one is empty" })),
  scanned_to: nullable(timestamp),
  log: t.Object({ days: count, rows: count }, { description: "How much is kept; 0 days: the log is off" }),
});
export type RequestsBody = Static<typeof requestsBody>;
