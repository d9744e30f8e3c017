import { type Static, Type as t } from "@sinclair/typebox";
import { keyBody } from "./contract.ts";
import { nullable, timestamp, errors } from "../http/schemas.ts";
import { usageSum, usageTotal } from "../usage/contract.ts";

const { id, name, expires_at, scope, allowed_models, used, refused_today, ...fields } = keyBody.properties;
const { max_concurrency, requests_per_minute, tokens_per_minute, tokens_per_day, tokens_per_month } = fields;

/** What the holder of a key may know about it: nothing about other keys, and no notes of operators. */
export const ownKeyBody = t.Object({
  id,
  name,
  now: timestamp,
  expires_at,
  scope,
  allowed_models,
  max_concurrency,
  requests_per_minute,
  tokens_per_minute,
  tokens_per_day,
  tokens_per_month,
  used,
  resets: t.Object(
    {
      requests_per_minute: nullable(timestamp),
      tokens_per_minute: nullable(timestamp),
      tokens_per_day: nullable(timestamp),
      tokens_per_month: nullable(timestamp),
    },
    { description: "When what counts now no longer counts" },
  ),
  refused_today,
  today: usageTotal,
  this_month: usageTotal,
  daily: t.Array(t.Object({ date: t.String({ format: "date" }), ...usageSum })),
});
export type OwnKeyBody = Static<typeof ownKeyBody>;

export const getOwnKey = {
  response: { 200: ownKeyBody, ...errors(401, 403) },
  detail: { summary: "The limits and the usage of the API key itself", security: [{ bearer: [] }, { xApiKey: [] }] },
};
