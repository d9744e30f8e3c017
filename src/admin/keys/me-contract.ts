import { type Static, Type as t } from "@sinclair/typebox";
import * as schema from "../http/schemas.ts";
import { csrfField, text } from "../http/body-schema.ts";
import { ceilings, keyBody, keyFields, limits, rotationRequest } from "./contract.ts";
import { daysBody, limitedBody } from "./own-key.ts";

/** A key is called by its user and its own name. */
export const maxUserLength = 58;
const name = text("name", { maxLength: 60, description: "Stored after the name of the user: `Kim: codex`" });
export const ownKeyRequest = t.Object({
  name,
  ...t.Partial(t.Object({ ...limits, expires_at: keyFields.expires_at })).properties,
  _csrf: csrfField,
});
const changeableFields = t.Partial(t.Object({ name, is_active: keyBody.properties.is_active })).properties;
export const ownKeyChangeRequest = t.Object(
  { ...changeableFields, _csrf: csrfField },
  { anyOf: Object.keys(changeableFields).map((field) => ({ required: [field] })) },
);

/** Without what operators note. */
export const ownKeyNames = [
  "id",
  "key",
  "is_active",
  "created_at",
  "last_used_at",
  "expires_at",
  "total_request_count",
  "total_input_tokens",
  "total_output_tokens",
  "allowed_models",
  ...(Object.keys(limitedBody) as (keyof typeof limitedBody)[]),
  "refused_today",
] as const;
const ownKey = t.Pick(keyBody, ownKeyNames);
export type OwnKey = Static<typeof ownKey>;
const ownKeys = t.Object({ keys: t.Array(ownKey, { description: "By id" }), ceilings });
export type OwnKeys = Static<typeof ownKeys>;
const ownUsage = t.Object({
  ...limitedBody,
  now: schema.timestamp,
  keys_end_at: schema.nullable(
    t.String({ format: "date-time", description: "Unless you sign in again. Null: while the provider knows you" }),
  ),
  refused_today: keyBody.properties.refused_today,
  ...daysBody,
  team: schema.nullable(t.Object({ ...limitedBody, ...daysBody }, { description: "Null: none" })),
});
export type OwnUsage = Static<typeof ownUsage>;

export const listOwnKeys = schema.responds("Your own keys, and the most that a new one may have", ownKeys);
export const createOwnKey = schema.takesBody(
  "Create a key of your own; only this response shows it in full. What is left out or null takes the ceiling",
  schema.strict(ownKeyRequest),
  { 201: ownKey },
  409,
);
export const updateOwnKey = schema.takesBody(
  "Rename a key of your own, or switch it on or off",
  schema.strict(ownKeyChangeRequest),
  { 200: ownKey },
  404,
);
export const rotateOwnKey = schema.takesBody(
  "Replace the secret of a key of your own, which then expires as a new one would",
  rotationRequest,
  { 200: ownKey },
  404,
  409,
);
export const getOwnUsage = schema.responds("What you use, and what your team does", ownUsage);
