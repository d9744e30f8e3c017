import { type Static, Type as t } from "@sinclair/typebox";
import { type ClientRule, clientRules } from "../../domain/models.ts";
import { cacheGroups } from "../../store/requests/contract.ts";
import { choice, count, errors, integerParameter, nullable } from "../http/schemas.ts";

export const cacheQuery = t.Object({
  by: choice("by", cacheGroups, "client"),
  hours: integerParameter("hours", { minimum: 1, maximum: 24, default: 1 }),
  limit: integerParameter("limit", { minimum: 1, maximum: 200, default: 50 }),
});
export type CacheQuery = Static<typeof cacheQuery>;

export const cacheBody = t.Object({
  by: t.String(),
  hours: t.Integer(),
  since: nullable(
    t.String({
      format: "date-time",
      description: "Requests before this were too many to add up; null: all of these hours were",
    }),
  ),
  is_reported: t.Boolean({ description: "Whether any cached input was reported" }),
  rows: t.Array(
    t.Object({
      name: nullable(t.String({ description: "Of the key, the model or the client program; null for a conversation" })),
      id: nullable(t.Integer({ description: "Of the key or the conversation" })),
      request_count: count,
      input_tokens: t.Integer({ minimum: 0, description: "With cached input, in each dialect" }),
      cached_tokens: count,
      lost_count: t.Integer({ minimum: 0, description: "Requests whose `cache_loss` is known" }),
      is_low: t.Boolean({ description: "A client program of which less than a fifth came from a cache" }),
      rule: nullable(
        t.Unsafe<ClientRule>(
          t.Union(
            clientRules.map((rule) => t.Literal(rule)),
            { description: "The rule of CLIENT_RULES that would mend it; null: none is known, or it is in use" },
          ),
        ),
      ),
    }),
    { description: "Most input that came from no cache first" },
  ),
});
export type CacheBody = Static<typeof cacheBody>;

export const getCache = {
  query: cacheQuery,
  response: { 200: cacheBody, ...errors(400, 401) },
  detail: {
    summary:
      "What share of the input came from caches, by key, model, client program or conversation; from the request log",
  },
};
