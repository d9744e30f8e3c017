import { type Static, Type as t } from "@sinclair/typebox";
import { engines } from "../../domain/backends.ts";
import { clientRules } from "../../domain/models.ts";
import { integerParameter, nullable, oneOf, timestamp, takesQuery } from "../http/schemas.ts";

export const clientRulesQuery = t.Object({
  hours: integerParameter("hours", { minimum: 1, maximum: 720, default: 24 }),
});
export type ClientRulesQuery = Static<typeof clientRulesQuery>;

export const clientRulesBody = t.Object({
  hours: t.Integer(),
  since: timestamp,
  complete: t.Boolean({ description: "False: there are more requests, before `since`" }),
  rows: t.Array(
    t.Object({
      client: t.String({ description: "Program and version" }),
      backend: nullable(t.String()),
      engines: t.Array(oneOf(engines)),
      rules: t.Array(oneOf(clientRules)),
      request_count: t.Integer({ minimum: 0, description: "All requests of this client for this backend" }),
      refused_count: t.Integer({ minimum: 0, description: "Those whose body the backend refused with 400" }),
      read_anew_count: t.Integer({
        minimum: 0,
        description:
          "Those that got less than half of their input from a cache, for a reason that the rules mend or that is not known",
      }),
      read_anew_tokens: nullable(
        t.Integer({ minimum: 0, description: "Their input from no cache; null: the backend does not report caches" }),
      ),
    }),
    { description: "What the rules of clients would have mended in requests that went without them" },
  ),
});
export type ClientRulesBody = Static<typeof clientRulesBody>;

export const listClientRules = takesQuery(
  "Which client rules would have helped which clients, from the request log",
  clientRulesQuery,
  clientRulesBody,
);
