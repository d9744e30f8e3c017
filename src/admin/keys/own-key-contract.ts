import { usageTotal, usageSum } from "../usage/contract.ts";
import { type Static, Type as t } from "@sinclair/typebox";
import { keyBody, limits } from "./contract.ts";
import { perWindowLimit } from "../../domain/limits.ts";
import { nullable, timestamp, responds } from "../http/schemas.ts";

const { id, name, expires_at, scope, allowed_models, allowed_paths, limits_extra, used, limit_states, refused_today } =
  keyBody.properties;

const chargedTotal = t.Object({
  ...usageTotal.properties,
  estimated_tokens: t.Integer({ description: "Charged to the limits of tokens where the backend reported none" }),
});

export const limitedTeam = { name: t.String(), ...limits, limits_extra, used, limit_states };
export const usageOfDays = {
  today: chargedTotal,
  this_month: chargedTotal,
  daily: t.Array(t.Object({ date: t.String({ format: "date" }), ...usageSum })),
};

/** What the holder of a key may know about it: nothing about other keys, and no notes of operators. */
export const ownKeyBody = t.Object({
  id,
  name,
  now: timestamp,
  expires_at,
  scope,
  allowed_models,
  allowed_paths,
  ...limits,
  limits_extra,
  used,
  limit_states,
  resets: t.Object(
    perWindowLimit(() => nullable(timestamp)),
    { description: "When what counts now no longer counts" },
  ),
  refused_today,
  team: nullable(t.Object(limitedTeam, { description: "Its limits hold too; null: none" })),
  ...usageOfDays,
});
export type OwnKeyBody = Static<typeof ownKeyBody>;

export const getOwnKey = responds("The limits and the usage of the API key itself", ownKeyBody);
