import { type Static, type TArray, type TInteger, type TOptional, type TUnsafe, Type as t } from "@sinclair/typebox";
import * as schema from "../http/schemas.ts";
import { csrfField, instant, optionalText, text, integerField, idField, booleanField } from "../http/body-schema.ts";
import { defaultUsersMax } from "../../domain/keys.ts";
import { isCalendarWindow } from "../../time/seoul.ts";
import { limitKinds, type LimitName, limitNames, perLimit } from "../../domain/limits.ts";

// A request's fields stand in the order in which a client hears of them.

export const limits = {
  ...perLimit((name) => {
    const { maximum, description } = limitKinds[name];
    return schema.nullable(integerField(name, { maximum, description }));
  }),
  priority: t.Union([t.Literal("high"), t.Literal("normal"), t.Literal("low"), t.Null()], {
    description: "Whose requests come first where they wait; of key, user and team the lowest. Null: normal",
    error: () => "priority must be one of high, normal, low",
  }),
};

/** Those that have a window of the calendar. */
const more = Object.fromEntries(
  limitNames.flatMap((name) => {
    const { maximum, window } = limitKinds[name];
    return isCalendarWindow(window) ? [[name, t.Optional(integerField(`limits_extra.${name}`, { maximum }))]] : [];
  }),
) as Record<LimitName, TOptional<TInteger>>;
const limitsExtra = t.Object(more, {
  additionalProperties: false,
  description: "What is added to a limit until its window ends",
  error: () => `limits_extra must be an object of ${Object.keys(more).join(", ")}`,
});

const scope = t.Union([t.Literal("all"), t.Literal("inference"), t.Literal("gpu")], {
  error: () => "scope must be one of all, inference, gpu",
});

interface ListOptions {
  minItems?: number;
  maxItems: number;
  description?: string;
}

const textList = (field: string, entry: TUnsafe<string>, options: ListOptions): TArray<TUnsafe<string>> =>
  t.Array(entry, {
    ...options,
    error: (value: unknown) => {
      if (!Array.isArray(value)) return `${field} must be an array of strings`;
      return value.length === 0
        ? `${field} must not be empty`
        : `${field} must have at most ${options.maxItems} entries`;
    },
  });

const modelPattern = text("allowed_models entry", { maxLength: 256 }, (name) =>
  name.slice(0, -1).includes("*") ? "allowed_models entry must have * only at its end" : undefined,
);

/** As the paths that globs are matched with: plain ASCII, without empty segments and parameters. */
const pathGlob = t.String({
  maxLength: 256,
  pattern: '^/v1(?:/[!"$&-.0-:<=>@-\\[\\]-~]+)+$',
  error: () =>
    "allowed_paths entry must begin with /v1/, have at most 256 characters of visible ASCII without %, ;, ?, # and \\, and no empty segment",
});

/** Such a header has a meaning of its own, or is not forwarded. */
const ofHttp =
  "(?:authorization|x-api-key|cookie|host|connection|content-.*|accept.*|transfer-encoding|expect|upgrade|te|trailer|via|forwarded|x-forwarded-.*|x-request-id)$";
const usersFrom = `^(?:open-webui(?:@[\\w.-]{1,64})?|body|header:(?!${ofHttp})[a-z0-9-]{1,64})$`;

/** What a key may take and do, and the notes on it; null clears a field. */
export const keyFields = {
  ...limits,
  limits_extra: schema.nullable(limitsExtra),
  notify: schema.nullable(
    booleanField("notify", "NOTICE_URL is told when 75, 95 and 100 % of a limit of a day, week or month are used"),
  ),
  scope: schema.nullable(scope),
  allowed_models: schema.nullable(
    textList("allowed_models", modelPattern, {
      minItems: 1,
      maxItems: 100,
      description: "Names, or prefixes that end in *, in any case",
    }),
  ),
  allowed_paths: schema.nullable(
    textList("allowed_paths", pathGlob, {
      minItems: 1,
      maxItems: 64,
      description: "Globs such as /v1/chat/*, in which * crosses slashes; /v1/tollgate/key is always open",
    }),
  ),
  expires_at: schema.nullable(instant("expires_at", "From then on the key is like an inactive one")),
  owner: schema.nullable(optionalText("owner", { maxLength: 120 })),
  note: schema.nullable(optionalText("note", { maxLength: 1000, multiline: true })),
  tags: schema.nullable(textList("tags", text("tag", { maxLength: 40 }), { maxItems: 10 })),
  users_from: schema.nullable(
    t.String({
      pattern: usersFrom,
      description: "open-webui, open-webui@NAME for users that several keys share, header:NAME, or body",
      error: () =>
        "users_from must be open-webui, open-webui@NAME, header:NAME or body; NAME cannot be a header of HTTP",
    }),
  ),
  users_secret: schema.nullable(
    t.String({
      minLength: 32,
      maxLength: 512,
      description: "Of signed users of Open WebUI. The one before it is accepted too, until the next",
      error: () => "users_secret must have 32 to 512 characters",
    }),
  ),
  user_limits: schema.nullable(
    t.Object(t.Partial(t.Object(limits)).properties, {
      additionalProperties: false,
      description: "Of each user that has no limits of its own",
      error: () => `user_limits must be an object of ${Object.keys(limits).join(", ")}`,
    }),
  ),
  users_max: schema.nullable(
    integerField("users_max", {
      maximum: 20_000,
      description: `By default ${defaultUsersMax}; all beyond it are one user, "other"`,
    }),
  ),
  users_required: schema.nullable(booleanField("users_required", "A POST without a user is refused")),
  team_id: schema.nullable(idField("team_id", "team", "Its limits hold too; of requests that begin from now on")),
};
const optionalFields = t.Partial(t.Object(keyFields));
export type KeyFields = Static<typeof optionalFields>;

export const keyName = text("name", { maxLength: 120, description: "Trimmed, then counted in code points" });
const visibleAscii = "^[\\x21-\\x7e]+$";
const secret = t.String({
  minLength: 1,
  maxLength: 512,
  pattern: visibleAscii,
  error: (value: unknown) => {
    if (typeof value !== "string" || value === "") return "key must be a non-empty string";
    const isVisible = new RegExp(visibleAscii).test(value);
    return isVisible ? "key must be at most 512 characters" : "key must contain only visible ASCII characters";
  },
});
export const isActive = booleanField("is_active");
export const newKeyRequest = t.Object({
  name: keyName,
  key: t.Optional(secret),
  is_active: t.Optional(isActive),
  ...optionalFields.properties,
  _csrf: csrfField,
});

const changeableFields = {
  is_active: isActive,
  name: keyName,
  ...keyFields,
};
export const keyChangeRequest = t.Object(
  {
    ...t.Partial(t.Object(changeableFields)).properties,
    end_running: t.Optional(
      booleanField("end_running", "With is_active false or expires_at: running responses end with the key"),
    ),
    _csrf: csrfField,
  },
  { anyOf: Object.keys(changeableFields).map((name) => ({ required: [name] })) },
);

export const rotationRequest = t.Object({
  grace_minutes: t.Optional(
    integerField("grace_minutes", {
      minimum: 0,
      maximum: 10_080,
      default: 0,
      description: "How long the old secret is accepted",
    }),
  ),
  _csrf: csrfField,
});
const keyQuery = t.Object({
  key_id: schema.keyParameter,
  limit: t.Optional(
    t.Integer({
      minimum: 1,
      maximum: 1000,
      description: "At most so many. The response has an ETag, and is 304 if If-None-Match has it",
      error: "limit must be an integer from 1 to 1000",
    }),
  ),
  search: schema.textParameter("search", 1000, "Only keys whose name, owner, note or tags contain it, in any case"),
});
const keyDeletionQuery = t.Object({
  end_running: schema.flagParameter("end_running", "Whether running responses end with the key"),
});
export type KeyDeletionQuery = Static<typeof keyDeletionQuery>;
export type KeyQuery = Static<typeof keyQuery>;
const limitState = t.Object({
  limit: schema.count,
  extra: t.Optional(t.Integer({ description: "Of the limit, what is added to it until resets_at" })),
  used: t.Integer({ minimum: 0, description: "Counted in the window, without what is reserved" }),
  reserved: t.Integer({ minimum: 0, description: "For requests that run" }),
  estimated: schema.nullable(
    t.Integer({
      minimum: 0,
      description: "Of what is used, tokens charged by an estimate; null where that is not known: requests, a minute",
    }),
  ),
  left: schema.count,
  resets_at: schema.nullable(schema.timestamp),
});

export const keyBody = t.Object({
  id: t.Integer(),
  key: t.String({ description: "In full in the response that creates it, masked everywhere else" }),
  name: t.String(),
  is_active: t.Boolean(),
  created_at: schema.timestamp,
  last_used_at: schema.nullable(schema.timestamp),
  total_request_count: schema.count,
  total_input_tokens: schema.count,
  total_output_tokens: schema.count,
  total_estimated_tokens: t.Integer({
    description: "Charged to the limits of tokens where the backend reported none; part of no other count",
  }),
  expires_at: schema.nullable(schema.timestamp),
  scope,
  allowed_models: schema.nullable(t.Array(t.String())),
  allowed_paths: schema.nullable(t.Array(t.String())),
  ...limits,
  limits_extra: keyFields.limits_extra,
  notify: t.Boolean(),
  used: t.Object(
    perLimit(() => schema.nullable(schema.count)),
    { description: "What counts against each limit now, tokens reserved for running requests included" },
  ),
  limit_states: t.Object(
    perLimit(() => t.Optional(limitState)),
    { description: "Of each limit that is set; resets_at is null where a limit frees when a response ends" },
  ),
  refused_today: t.Integer({ minimum: 0, description: "Requests that the limits refused today in Seoul time" }),
  owner: schema.nullable(t.String()),
  note: schema.nullable(t.String()),
  tags: t.Array(t.String()),
  users_from: schema.nullable(t.String()),
  has_users_secret: t.Boolean(),
  user_limits: schema.nullable(t.Object(limits)),
  users_max: schema.nullable(t.Integer()),
  users_required: t.Boolean(),
  team_id: schema.nullable(t.Integer()),
  user_id: schema.nullable(t.Integer({ description: "Whose own it is: it counts for that user" })),
});
export type KeyBody = Static<typeof keyBody>;

export const defaultMaxKeys = 10;
const policyFields = {
  ...limits,
  expires_in_days: schema.nullable(integerField("expires_in_days", { maximum: 3650 })),
  allowed_models: keyFields.allowed_models,
  team_id: keyFields.team_id,
};
const keyPolicy = t.Object(policyFields);
/** What a new key gets where the request leaves it out; null: nothing. */
export type KeyDefaults = Static<typeof keyPolicy>;
export const ceilings = t.Object(
  {
    max_keys: schema.nullable(
      integerField("max_keys", {
        maximum: 1000,
        description: `How many keys of their own somebody has; null: ${defaultMaxKeys}`,
      }),
    ),
    ...limits,
    expires_in_days: policyFields.expires_in_days,
  },
  { description: "The most that who signed in may ask for in a key of their own; null: what new keys get" },
);
export type Ceilings = Static<typeof ceilings>;
const keyPolicyBody = t.Object({ defaults: keyPolicy, member: ceilings });
export type KeyPolicy = Static<typeof keyPolicyBody>;
export const policyDefaults = t.Partial(keyPolicy, { error: () => "defaults must be an object" });
export const policyCeilings = t.Partial(ceilings, { error: () => "member must be an object" });
export const keyPolicyRequest = t.Object({
  defaults: policyDefaults,
  member: t.Optional(policyCeilings),
  _csrf: csrfField,
});

export const getKeyPolicy = schema.responds(
  "What new keys get where the request that creates them leaves it out, and the most that a member may ask for",
  keyPolicyBody,
);
export const setKeyPolicy = schema.takesBody(
  "Replace what new keys get, and the most that a member may ask for",
  {
    ...keyPolicyRequest,
    properties: {
      ...keyPolicyRequest.properties,
      defaults: schema.strict(policyDefaults),
      member: t.Optional(schema.strict(policyCeilings)),
    },
    additionalProperties: false,
  },
  { 200: keyPolicyBody },
);
const keyList = schema.takesQuery("All keys, by id", keyQuery, t.Array(keyBody));
export const listKeys = {
  ...keyList,
  response: { ...keyList.response, 304: t.Void({ description: "The client has them already" }) },
};
export const createKey = schema.takesBody(
  "Create a key; only this response shows it in full",
  schema.strict(newKeyRequest),
  { 201: keyBody },
  409,
);
export const updateKey = schema.takesBody(
  "Change a key: its name, state, limits and notes",
  schema.strict(keyChangeRequest),
  { 200: keyBody },
  404,
);
export const rotateKey = schema.takesBody(
  "Replace the secret of a key; only this response shows the new one in full",
  rotationRequest,
  { 200: keyBody },
  404,
  409,
);
export const deleteKey = schema.takesQuery("Delete a key; its usage is kept", keyDeletionQuery, schema.okBody, 404);
