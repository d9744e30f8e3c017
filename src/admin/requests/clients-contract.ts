import { type Static, Type as t } from "@sinclair/typebox";
import { engines } from "../../domain/backends.ts";
import { clientRules } from "../../domain/models.ts";
import { count, errors, integerParameter, keyParameter, nullable, timestamp } from "../http/schemas.ts";

export const clientsQuery = t.Object({
  hours: integerParameter("hours", { minimum: 1, maximum: 720, default: 24 }),
  key_id: keyParameter,
});
export type ClientsQuery = Static<typeof clientsQuery>;

const promptTokens = t.Integer({ minimum: 0, description: "With what came from the backend’s cache" });

export const clientsBody = t.Object({
  hours: t.Integer(),
  since: timestamp,
  complete: t.Boolean({ description: "False: there are more requests, before `since`" }),
  request_count: count,
  prompt_tokens: promptTokens,
  rows: t.Array(
    t.Object({
      client: nullable(t.String({ description: "Program and version: the first word of User-Agent" })),
      class: nullable(t.String({ description: "What the client says that its requests are for, such as compaction" })),
      request_count: count,
      prompt_tokens: promptTokens,
      from_cache_tokens: count,
      output_tokens: count,
    }),
    { description: "Most input first, at most 200" },
  ),
  advice: t.Array(
    t.Object({
      client: t.String(),
      backend: nullable(t.String()),
      engines: t.Array(t.Unsafe<(typeof engines)[number]>(t.Union(engines.map((name) => t.Literal(name))))),
      rules: t.Array(t.Unsafe<(typeof clientRules)[number]>(t.Union(clientRules.map((name) => t.Literal(name))))),
      request_count: count,
      refused_count: t.Integer({ minimum: 0, description: "Those whose body the backend refused with 400" }),
      read_again_tokens: t.Integer({ minimum: 0, description: "Input that did not come from the backend’s cache" }),
    }),
    { description: "Requests of clients that need client rules in front of their backend, and went without" },
  ),
});
export type ClientsBody = Static<typeof clientsBody>;

export const listClients = {
  query: clientsQuery,
  response: { 200: clientsBody, ...errors(400, 401) },
  detail: { summary: "Requests and tokens by client program and class, and which client rules would help" },
};
