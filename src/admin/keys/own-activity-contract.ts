import { type Static, Type as t } from "@sinclair/typebox";
import { type ClientRule, clientRules } from "../../domain/models.ts";
import type { RequestChange } from "../../domain/requests.ts";
import { count, nullable, timestamp, responds, counterMembers } from "../http/schemas.ts";

/** What the holder of a key may know of its requests: no address, since others may share the key. */
export const ownActivityBody = t.Object({
  this_month: t.Object({
    prompt_tokens: t.Integer({ minimum: 0, description: "With what came from the backend’s cache" }),
    from_cache_tokens: count,
    currency: nullable(t.String()),
    cost: nullable(t.Number({ description: "Of the tokens whose price is known; null if there are none" })),
    cost_is_partial: t.Boolean(),
  }),
  client_rules: t.Array(
    t.Object({
      rule: t.Unsafe<ClientRule>(t.Union(clientRules.map((name) => t.Literal(name)))),
      request_count: count,
    }),
    { description: "Those that changed requests of the last 24 hours" },
  ),
  requests: t.Array(
    t.Object({
      request_id: t.String(),
      ended_at: timestamp,
      path: t.String(),
      model: nullable(t.String({ description: "As the client asked for it" })),
      client: nullable(t.String()),
      class: nullable(t.String()),
      status: t.Integer(),
      outcome: t.String(),
      code: nullable(t.String()),
      ...counterMembers(() => nullable(count)),
      duration_ms: t.Number({ minimum: 0 }),
      changes: t.Array(t.Unsafe<RequestChange>(t.String())),
    }),
    { description: "The last ones, latest first" },
  ),
});
export type OwnActivityBody = Static<typeof ownActivityBody>;

export const getOwnActivity = responds("What the API key itself asked for of late", ownActivityBody);
