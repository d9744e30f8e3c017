import { logFilterParameters } from "./contract.ts";
import { type Static, Type as t } from "@sinclair/typebox";
import type { RequestTrait } from "../../store/requests/contract.ts";
import { choice, count, integerParameter, nullable, timestamp, takesQuery } from "../http/schemas.ts";

/** By what requests can be grouped, and what those of a group have in common. */
export const groupings = {
  program: "client",
  client: "client",
  class: "requestClass",
  key: "keyId",
  team: "teamId",
  user: "userId",
  model: "modelSent",
  backend: "backend",
  path: "path",
  status: "status",
  outcome: "outcome",
  address: "address",
  conversation: "conversation",
} as const satisfies Record<string, RequestTrait>;
export type Grouping = keyof typeof groupings;

const sums = {
  request_count: count,
  prompt_tokens: t.Integer({ minimum: 0, description: "Input, with what came from a cache" }),
  from_cache_tokens: t.Integer({ minimum: 0, description: "As far as backends report it" }),
  lost_count: t.Integer({ minimum: 0, description: "Requests whose `cache_loss` is known" }),
  output_tokens: count,
  cost: nullable(t.Number({ description: "Of the tokens whose price is known; null if there are none" })),
  cost_is_partial: t.Boolean(),
};

export const groupsQuery = t.Object({
  by: choice("by", Object.keys(groupings) as Grouping[], "program"),
  ...logFilterParameters,
  limit: integerParameter("limit", { minimum: 1, maximum: 500, default: 200 }),
});
export type GroupsQuery = Static<typeof groupsQuery>;

export const groupsBody = t.Object({
  by: t.Unsafe<Grouping>(t.String()),
  counted_from: nullable(
    t.String({
      format: timestamp.format ?? "",
      description: "Requests before this were too many to add up; null: all that match were",
    }),
  ),
  kept_from: t.String({ format: timestamp.format ?? "", description: "Since when the log is kept at most" }),
  currency: nullable(t.String()),
  total: t.Object(sums),
  classes: t.Array(t.Object({ class: nullable(t.String()), prompt_tokens: count }), {
    description: "What the requests are for; most input first, at most 20",
  }),
  group_count: count,
  rows: t.Array(
    t.Object({
      name: nullable(t.String({ description: "Null for a conversation, and for requests that do not say" })),
      id: nullable(t.Integer({ description: "Of the key, the team, the user or the conversation" })),
      ...sums,
    }),
    { description: "Most input first" },
  ),
});
export type GroupsBody = Static<typeof groupsBody>;

export const listGroups = takesQuery(
  "The requests of the log by client, class, key, model or what else they have in common: tokens, what came from caches, cost",
  groupsQuery,
  groupsBody,
);
