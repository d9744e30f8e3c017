import { timestampParameter, usageFilter } from "./contract.ts";
import { type Static, Type as t } from "@sinclair/typebox";
import * as schema from "../http/schemas.ts";
import { listedUsageFields } from "../../domain/usage.ts";
import { csrfField } from "../http/body-schema.ts";

const pricedUsage = {
  request_count: schema.count,
  ...schema.counterMembers(() => schema.count, listedUsageFields),
  prompt_tokens: t.Integer({ minimum: 0, description: "Input, with what came from a cache" }),
  from_cache_tokens: t.Integer({ minimum: 0, description: "Of it, as far as backends report it" }),
  cost: schema.nullable(t.Number({ description: "Of the tokens whose price is known; null if there are none" })),
  cost_is_partial: t.Boolean({
    description:
      "Some of the tokens are not in the cost: they have no price or, of a key’s models, are of more than are read",
  }),
};

const day = t.String({ format: "date" });
const costGroups = ["day", "key", "team", "user", "model", "tag", "owner", "key_model"] as const;

const costsQuery = t.Object({
  from: schema.dayParameter("from", "The first day in Seoul time; by default, 29 days before the last"),
  to: schema.dayParameter("to", "The last day, which is included; by default, today"),
  by: schema.choice("by", costGroups, "day"),
  since: timestampParameter("since", "With until, instead of days: whole hours, or whole days more than 90 days ago"),
  until: timestampParameter("until"),
  ...usageFilter,
  ...schema.pageParameters({ maximum: 2000, default: 500 }, "^[\\w-]{1,2000}$"),
});
export type CostsQuery = Static<typeof costsQuery>;

const costsBody = t.Object({
  from: day,
  to: day,
  by: t.String(),
  currency: schema.nullable(t.String()),
  rows: t.Array(
    t.Object({
      date: schema.nullable(day),
      ...schema.keyAndModel,
      team_id: schema.nullable(t.Integer({ description: "0: of keys while they had no team" })),
      team_name: schema.nullable(t.String()),
      user_id: schema.nullable(t.Integer({ description: "0: nobody's in particular" })),
      user_name: schema.nullable(t.String()),
      tag: schema.nullable(
        t.String({ description: "Empty: of keys without a tag. A key with several counts for each" }),
      ),
      owner: schema.nullable(t.String({ description: "Empty: of keys without an owner" })),
      ...pricedUsage,
    }),
    {
      description:
        "Latest day first, then by the id of the key, team or user, then by model, tag or owner; other members are null",
    },
  ),
  total: schema.nullable(
    t.Object(pricedUsage, { description: "Of all rows together, whose tags overlap; on the first page" }),
  ),
  names: t.Object(
    { key: schema.nullable(t.String()), team: schema.nullable(t.String()), user: schema.nullable(t.String()) },
    { description: "Of what the query filters by" },
  ),
  prices_changed_at: schema.nullable(schema.timestamp),
  labels: t.Array(t.Union([t.Literal("tag"), t.Literal("owner")]), { description: "Which labels keys have" }),
  next_cursor: schema.nextCursor,
});
export type CostsBody = Static<typeof costsBody>;

const price = t.Number({ minimum: 0, maximum: 1_000_000_000 });
export const pricesBody = t.Object({
  currency: schema.nullable(t.String({ pattern: "^[A-Z]{3}$" })),
  models: t.Array(
    t.Object({
      pattern: t.String({ minLength: 1, maxLength: 200, description: "A model name; `*` stands for any characters" }),
      valid_from: day,
      input: t.Number({ minimum: 0, maximum: 1_000_000_000, description: "For a million tokens, like the others" }),
      cached_input: schema.nullable(price),
      output: price,
    }),
    { maxItems: 500 },
  ),
  energy: t.Array(t.Object({ valid_from: day, per_kwh: price }), { maxItems: 100 }),
});
export type PricesBody = Static<typeof pricesBody>;
export const pricesRequest = t.Object({ ...t.Partial(pricesBody).properties, _csrf: csrfField });

const reconciliationQuery = t.Object({
  days: schema.integerParameter("days", { minimum: 1, maximum: 90, default: 30 }),
});
const reconciledDay = {
  date: day,
  generated_tokens: schema.count,
  counted_output_tokens: schema.count,
  difference: t.Integer({ description: "Generated less counted: responses that were cut, or without usage" }),
  prompt_tokens: schema.count,
  counted_input_tokens: schema.count,
  prompt_difference: t.Integer({ description: "The same of prompts" }),
  is_drifting: t.Boolean({ description: "Outputs are more than 1 % and 10,000 tokens apart" }),
};
const reconciliationBody = t.Object({
  days: t.Integer(),
  source: schema.nullable(
    t.String({ description: "`vllm`, `sglang` or `llamacpp`; null if the backend has no such metrics" }),
  ),
  checked_at: schema.nullable(schema.timestamp),
  rows: t.Array(t.Object(reconciledDay), { description: "Latest day first" }),
  by_backend: t.Array(t.Object({ backend: t.String(), ...reconciledDay }), {
    description: "The same for each backend of MODELS_FILE, the latest 1,000",
  }),
});
export type ReconciliationBody = Static<typeof reconciliationBody>;

export const listCosts = schema.takesQuery(
  "Tokens and what they cost, between two Seoul days, in pages",
  costsQuery,
  costsBody,
);
export const getPrices = schema.responds("Prices of tokens and energy", pricesBody);
export const setPrices = schema.takesBody("Replace all prices", pricesRequest, { 200: pricesBody });
export const getReconciliation = schema.takesQuery(
  "Tokens by the backend's own counters and as counted here, by day",
  reconciliationQuery,
  reconciliationBody,
);
