import type { JsonObject } from "../http/body.ts";
import { bodyParser } from "../http/body-schema.ts";
import type { ApiError } from "../http/errors.ts";
import { type ExplainBody, explainedRequest } from "./contract.ts";

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
  kept: ExplainBody["kept"];
}

export interface ExplainDeps {
  /** Rewrites a body as the proxy would, and forwards nothing. */
  explain: (path: string, body: string) => Promise<Explanation>;
}

const parseExplained = bodyParser(explainedRequest);

export const explainRequest =
  ({ explain }: ExplainDeps) =>
  async ({ json }: { json: JsonObject | ApiError }): Promise<ExplainBody> => {
    const { path, body } = parseExplained(json);
    const { refused = null, model = null, edits, ...explanation } = await explain(path, body);
    return {
      ...explanation,
      refused,
      model,
      edits: edits.map(({ what, from = null, to = null, why }) => ({ what, from, to, why })),
    };
  };
