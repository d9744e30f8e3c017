import { type Static, Type as t } from "@sinclair/typebox";
import type { LimitName } from "../../domain/keys.ts";
import { limitMaxima } from "./fields.ts";
import { count, csrfField, describes, notBlank, nullable, timestamp } from "../http/schemas.ts";

const noNullCharacter = "^[^\\u0000]*$";
const keyName = t.String({
  minLength: 1,
  maxLength: 120,
  pattern: notBlank,
  description: "Trimmed, then counted in code points",
});
const limit = (name: LimitName, description: string) =>
  nullable(t.Integer({ minimum: 1, maximum: limitMaxima[name], description }));
const limits = {
  max_concurrency: limit("max_concurrency", "Requests in flight"),
  requests_per_minute: limit("requests_per_minute", "In any 60 seconds"),
  tokens_per_minute: limit("tokens_per_minute", "Input and output, in any 60 seconds"),
  tokens_per_day: limit("tokens_per_day", "Input and output, per day in Seoul time"),
  tokens_per_month: limit("tokens_per_month", "Input and output, per month in Seoul time"),
};
const scope = t.Union([t.Literal("all"), t.Literal("inference"), t.Literal("gpu")]);
/** What a key may take and do, and the notes on it; null clears a field. */
const keyFields = {
  ...limits,
  expires_at: nullable(t.String({ format: "date-time", description: "From then on the key is like an inactive one" })),
  scope: nullable(scope),
  allowed_models: nullable(
    t.Array(t.String({ minLength: 1, maxLength: 256, pattern: notBlank }), {
      minItems: 1,
      maxItems: 100,
      description: "Names, or prefixes that end in *, in any case",
    }),
  ),
  owner: nullable(t.String({ maxLength: 120, pattern: noNullCharacter })),
  note: nullable(t.String({ maxLength: 1000, pattern: noNullCharacter })),
  tags: nullable(t.Array(t.String({ minLength: 1, maxLength: 40, pattern: notBlank }), { maxItems: 10 })),
};
export const newKeyRequest = describes(
  t.Object({
    name: keyName,
    key: t.Optional(t.String({ minLength: 1, maxLength: 512, pattern: "^[\\x21-\\x7e]+$" })),
    ...t.Partial(t.Object(keyFields)).properties,
    _csrf: csrfField,
  }),
);
const changedKeyFields = { name: keyName, is_active: t.Boolean(), ...keyFields };
export const keyChangeRequest = describes(
  t.Object(
    {
      ...t.Partial(t.Object(changedKeyFields)).properties,
      end_running: t.Optional(
        t.Boolean({ description: "With is_active false or expires_at: running responses end with the key" }),
      ),
      _csrf: csrfField,
    },
    { anyOf: Object.keys(changedKeyFields).map((name) => ({ required: [name] })) },
  ),
);
export const rotationRequest = describes(
  t.Object({
    grace_minutes: t.Optional(
      t.Integer({ minimum: 0, maximum: 10_080, default: 0, description: "How long the old secret is accepted" }),
    ),
    _csrf: csrfField,
  }),
);
export const keyQuery = t.Object({
  search: t.Optional(
    t.String({
      maxLength: 1000,
      description: "Only keys whose name, owner, note or tags contain it, in any case",
      error: "search must be at most 1000 characters",
    }),
  ),
});
export const keyDeletionQuery = t.Object({
  end_running: t.Optional(
    t.Union([t.Literal("true"), t.Literal("false")], {
      description: "Whether running responses end with the key",
      error: "end_running must be true or false",
    }),
  ),
});
export type KeyDeletionQuery = Static<typeof keyDeletionQuery>;
export type KeyQuery = Static<typeof keyQuery>;
export const keyBody = t.Object({
  id: t.Integer(),
  key: t.String({ description: "In full in the response that creates it, masked everywhere else" }),
  name: t.String(),
  is_active: t.Boolean(),
  created_at: timestamp,
  last_used_at: nullable(timestamp),
  total_request_count: count,
  total_input_tokens: count,
  total_output_tokens: count,
  expires_at: nullable(timestamp),
  scope,
  allowed_models: nullable(t.Array(t.String())),
  ...limits,
  used: t.Object(
    {
      max_concurrency: nullable(count),
      requests_per_minute: nullable(count),
      tokens_per_minute: nullable(count),
      tokens_per_day: nullable(count),
      tokens_per_month: nullable(count),
    },
    { description: "What counts against each limit now, tokens reserved for running requests included" },
  ),
  refused_today: t.Integer({ minimum: 0, description: "Requests that the limits refused today in Seoul time" }),
  owner: nullable(t.String()),
  note: nullable(t.String()),
  tags: t.Array(t.String()),
});
export type KeyBody = Static<typeof keyBody>;
