import { acceptedBody, type JsonObject } from "../http/body.ts";
import { ApiError } from "../http/errors.ts";
import type { ExplainBody } from "./traffic-contract.ts";

interface Explanation {
  refused: string | undefined;
  changed: boolean;
  body: string;
  stream: boolean;
  model: { asked: string; sent: string } | undefined;
  edits: {
    what: ExplainBody["edits"][number]["what"];
    from: string | undefined;
    to: string | undefined;
    why: string;
  }[];
}

export interface ExplainDeps {
  /** Rewrites a body as the proxy would, and forwards nothing. */
  explain: (path: string, body: string) => Promise<Explanation>;
}

const maxPathLength = 2000;

export const explainRequest =
  ({ explain }: ExplainDeps) =>
  async ({ json }: { json: JsonObject | ApiError }): Promise<ExplainBody> => {
    const { path, body } = acceptedBody(json);
    if (typeof path !== "string" || !/^\/v1\/[^?#]*$/.test(path) || path.length > maxPathLength) {
      throw new ApiError(400, "path must be a string that begins with /v1/, without a query");
    }
    if (typeof body !== "string") throw new ApiError(400, "body must be a string");
    const { refused = null, model = null, edits, ...explanation } = await explain(path, body);
    return {
      ...explanation,
      refused,
      model,
      edits: edits.map(({ what, from = null, to = null, why }) => ({ what, from, to, why })),
    };
  };
