import type { AdminDeps } from "../http/deps.ts";
import type { JsonObject } from "../http/body.ts";
import { bodyParser } from "../http/body-schema.ts";
import type { ApiError } from "../http/errors.ts";
import { type ExplainBody, explainedRequest } from "./contract.ts";

const parseExplained = bodyParser(explainedRequest);

export const explainRequest =
  ({ explain, catalog, backendStates, foresee }: AdminDeps) =>
  async ({ json }: { json: JsonObject | ApiError }): Promise<ExplainBody> => {
    const { path, body, user_agent: userAgent = null } = parseExplained(json);
    const explained = await explain(path, body, userAgent);
    const { refused = null, model = null, candidates, edits, ...explanation } = explained;
    const states = await backendStates();
    const stateOf = (name: string) => states.find((one) => one.name === name)?.state ?? "in";
    return {
      ...explanation,
      refused,
      model: model && { asked: model.asked, sent: model.sent, name: model.name },
      candidates: candidates.map((name) => ({ name, state: stateOf(name) })),
      goes_to: foresee(catalog(), states, candidates) ?? null,
      edits: edits.map(({ what, from = null, to = null, why }) => ({ what, from, to, why })),
    };
  };
