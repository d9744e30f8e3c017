import type { BackendStates, BackendStatus, Choice } from "../../domain/backends.ts";
import type { Catalog } from "../../domain/models.ts";
import type { RequestedNames } from "../../domain/requests.ts";
import type { JsonObject } from "../http/body.ts";
import { bodyParser } from "../http/body-schema.ts";
import type { ApiError } from "../http/errors.ts";
import { type ExplainBody, explainedRequest } from "./contract.ts";

interface Explanation {
  refused: string | undefined;
  changed: boolean;
  body: string;
  stream: boolean;
  model: RequestedNames | undefined;
  candidates: readonly string[];
  edits: {
    what: ExplainBody["edits"][number]["what"];
    from: string | undefined;
    to: string | undefined;
    why: string;
  }[];
  kept: ExplainBody["kept"];
}

export interface ExplainDeps {
  /** Rewrites a body as the proxy would, and forwards nothing. */
  explain: (path: string, body: string, userAgent: string | null) => Promise<Explanation>;
  catalog: () => Catalog;
  backendStates: BackendStates["list"];
  /** Where a request would go now; undefined: it would wait. */
  foresee: (catalog: Catalog, states: readonly BackendStatus[], candidates: readonly string[]) => Choice | undefined;
}

const parseExplained = bodyParser(explainedRequest);

export const explainRequest =
  ({ explain, catalog, backendStates, foresee }: ExplainDeps) =>
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
