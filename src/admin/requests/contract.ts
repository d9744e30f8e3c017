import {
  type SchemaOptions,
  type Static,
  type TInteger,
  type TOptional,
  type TSchema,
  type TString,
  type TUnsafe,
  Type as t,
} from "@sinclair/typebox";
import * as schema from "../http/schemas.ts";
import { csrfField } from "../http/body-schema.ts";
import { choiceReasons } from "../../domain/backends.ts";
import { placeBody, queueBody } from "./queue.ts";
import { type RequestMembers, memberFields } from "../../domain/request-fields.ts";
import { priorities } from "../../domain/limits.ts";
import { outcomes, requestChanges } from "../../domain/requests.ts";

const milliseconds = t.Number({ minimum: 0 });
export const change = schema.oneOf(requestChanges);

/** A parameter of text. Its length bounds what a filter costs. */
const textParameter = (name: string, description = "Exact"): TOptional<TString> =>
  t.Optional(
    t.String({ minLength: 1, maxLength: 512, error: `${name} must have from 1 to 512 characters`, description }),
  );

export const timeMessage = (name: string): string => `${name} must be a time such as 2026-05-01T12:00:00Z`;
const dayPattern = "\\d{4}-((0[1-9]|1[0-2])-(0[1-9]|1\\d|2[0-8])|(0[13-9]|1[0-2])-(29|30)|02-29|(0[13578]|1[02])-31)";
const hourPattern = "([01]\\d|2[0-3]):[0-5]\\d";
const timePattern = `^${dayPattern}T${hourPattern}(:[0-5]\\d(\\.\\d{1,3})?)?(Z|[+-]${hourPattern})$`;
const timeParameter = (name: string): TOptional<TString> =>
  t.Optional(t.String({ pattern: timePattern, error: timeMessage(name) }));

const optionalInteger = (name: string, maximum: number, minimum = 0): TOptional<TInteger> =>
  t.Optional(t.Integer({ minimum, maximum, error: `${name} must be an integer from ${minimum} to ${maximum}` }));

const trueParameter = (name: string, description: string) =>
  t.Optional(t.Literal("true", { description, error: `${name} must be true, or left out` }));

const maxInteger = Number.MAX_SAFE_INTEGER;

/** Of the log, which has a past. */
export const logFilterParameters = {
  key_id: optionalInteger("key_id", maxInteger, 1),
  team_id: schema.teamParameter,
  user_id: schema.userParameter,
  model: textParameter("model", "As sent to the backend, or the name in MODELS_FILE of what was sent"),
  backend: textParameter("backend"),
  status: t.Optional(
    t.String({ pattern: "^[1-5](xx|\\d\\d)$", error: "status must be a status such as 404, or a class such as 5xx" }),
  ),
  outcome: t.Optional(schema.oneOf(outcomes, { error: `outcome must be one of ${outcomes.join(", ")}` })),
  failed: trueParameter("failed", "Only failures; a client that left is none"),
  without_usage: trueParameter(
    "without_usage",
    "Only whole 2xx responses to a POST that were counted without tokens, although their path reports them",
  ),
  path: textParameter("path"),
  client: textParameter("client", "A program, of any version, or one with its version: `claude-cli/2.1.330`"),
  class: textParameter("class"),
  address: textParameter("address"),
  conversation: optionalInteger("conversation", maxInteger, 0),
  request_id: textParameter("request_id"),
  trace_id: textParameter("trace_id"),
  min_duration_ms: optionalInteger("min_duration_ms", 2_000_000_000),
  since: timeParameter("since"),
  until: timeParameter("until"),
};
const logFilterQuery = t.Object(logFilterParameters);
export type LogFilterQuery = Static<typeof logFilterQuery>;

const requestsQuery = t.Object({
  ...logFilterParameters,
  after: optionalInteger("after", maxInteger),
  ...schema.pageParameters({ maximum: 200, default: 50 }, "^[\\da-z]{1,11}\\.[\\da-z]{1,11}$"),
});
export type RequestsQuery = Static<typeof requestsQuery>;

const schemaOf: Record<(typeof memberFields)[number]["kind"], (options: SchemaOptions) => TSchema> = {
  text: (options) => t.String(options),
  integer: (options) => t.Integer(options),
  count: (options) => t.Integer({ minimum: 0, ...options }),
  milliseconds: () => milliseconds,
  time: () => schema.timestamp,
  flag: (options) => t.Boolean(options),
  changes: () => t.Array(change),
};
const members = memberFields.map(({ name, kind, nullable: orNull, description }) => {
  const member = schemaOf[kind](description === undefined ? {} : { description });
  return [name, orNull ? schema.nullable(member) : member] as const;
});
export const requestBody = t.Object({
  id: t.Integer(),
  ...(Object.fromEntries(members) as { [Name in keyof RequestMembers]: TUnsafe<RequestMembers[Name]> }),
});
export type RequestBody = Static<typeof requestBody>;

const runningBody = t.Object({
  requests: t.Array(
    t.Object({
      id: t.String(),
      request_id: t.String(),
      key_id: schema.nullable(t.Integer()),
      key_name: schema.nullable(t.String()),
      team_id: schema.nullable(t.Integer({ description: "The key's when it began" })),
      team_name: schema.nullable(t.String()),
      user_id: schema.nullable(t.Integer()),
      user_name: schema.nullable(t.String()),
      address: t.String(),
      method: t.String(),
      path: t.String(),
      model: schema.nullable(t.String()),
      backend: schema.nullable(t.String()),
      state: schema.oneOf(["receiving", "queued", "prefill", "waiting", "running"], {
        description:
          "Its body is read, it waits in the queue, until another long prompt is read, for the backend, or the response flows",
      }),
      prefill_tokens: schema.nullable(schema.count),
      priority: schema.oneOf(priorities),
      place: schema.nullable(placeBody),
      started_at: schema.timestamp,
      age_ms: milliseconds,
      received_bytes: schema.count,
      output_tokens: schema.nullable(schema.count),
      heartbeats_ms: schema.nullable(milliseconds),
    }),
    {
      description:
        "Oldest first. `heartbeats_ms`: for how long a stream has had no content, only comments, pings or empty chunks; null unless that is three read timeouts or more",
    },
  ),
  more: t.Boolean({ description: "There are more than are listed" }),
  queue: queueBody,
});
export type RunningBody = Static<typeof runningBody>;

const requestsBody = t.Object({
  requests: t.Array(requestBody, { description: "Latest first" }),
  next_cursor: schema.nextCursor,
  scanned_to: schema.nullable(schema.timestamp),
  more: t.Boolean({ description: "Whether there may be more than these; `next_cursor` leads to it" }),
  last_id: schema.described(
    "The highest id of the log, whether it matches or not. `after` lists those above an id: ask for it with the `last_id` of 3 s ago, since a row may be seen after one with a higher id, and replace rows by `id`",
  ),
  log: t.Object(
    { days: schema.count, rows: schema.count },
    { description: "How much is kept; 0 days: the log is off" },
  ),
});
export type RequestsBody = Static<typeof requestsBody>;

export const explainedRequest = t.Object({
  path: t.String({
    pattern: "^/v1/[^?#]*$",
    maxLength: 2000,
    error: () => "path must be a string that begins with /v1/, without a query",
  }),
  body: t.String({ error: () => "body must be a string" }),
  user_agent: t.Optional(
    t.String({
      maxLength: 200,
      error: () => "user_agent must be a string of at most 200 characters",
      description: "The client that would send it; for CLIENT_RULES=auto",
    }),
  ),
  _csrf: csrfField,
});
const explainBody = t.Object({
  refused: schema.nullable(t.String({ description: "The code of the error that the client would get" })),
  changed: t.Boolean(),
  body: t.String({ description: "As it would be sent" }),
  stream: t.Boolean(),
  model: schema.nullable(t.Object({ asked: t.String(), sent: t.String(), name: t.String() })),
  candidates: t.Array(t.Object({ name: t.String(), state: schema.backendState }), {
    description: "The backends that may serve it, in the order of the file",
  }),
  goes_to: schema.nullable(
    t.Object(
      { backend: t.String(), reason: schema.oneOf(choiceReasons) },
      { description: "Where it would go now, and why; null: it would wait, or is refused" },
    ),
  ),
  edits: t.Array(
    t.Object({ what: change, from: schema.nullable(t.String()), to: schema.nullable(t.String()), why: t.String() }),
  ),
  kept: t.Array(t.Object({ what: change, why: t.String() }), {
    description: "What is usually changed and here is not",
  }),
});
export type ExplainBody = Static<typeof explainBody>;

export const listRequests = schema.takesQuery("The request log, latest first, in pages", requestsQuery, requestsBody);
export const listInFlight = schema.responds(
  "The requests that run now, oldest first; of all processes of this instance",
  runningBody,
);
export const endInFlight = schema.responds(
  "End a running request as a broken response; it counts with the usage read so far",
  schema.okBody,
  404,
);
export const explainRequest = schema.takesBody(
  "How the rewriter would change a request body, and why; nothing is forwarded",
  explainedRequest,
  { 200: explainBody },
);
