import type { RequestChange } from "../../domain/requests.ts";
import { createRewriter, type ModelNames, type Rewritten } from "./rewrite.ts";
import type { RewriteRules } from "./rules.ts";
import { hanGuardPrefix, maximumEffortPrefix } from "./system-prefix.ts";

/** What would become of a request's body, and why. */
export interface Explanation {
  /** The error that the client would get; undefined if the body would be forwarded. */
  refused: "invalid_json" | undefined;
  changed: boolean;
  /** As it would be sent. */
  body: string;
  stream: boolean;
  model: ModelNames | undefined;
  edits: ExplainedEdit[];
}

export interface ExplainedEdit {
  what: RequestChange;
  from: string | undefined;
  to: string | undefined;
  why: string;
}

/** Rewrites a body as the proxy would, and forwards nothing. */
export async function explainRewrite(path: string, body: string, rules: RewriteRules): Promise<Explanation> {
  const rewritten = await createRewriter(rules)(path, new TextEncoder().encode(body));
  if ("refused" in rewritten) {
    return { refused: "invalid_json", changed: false, body, stream: false, model: undefined, edits: [] };
  }
  const { pieces, stream, model } = rewritten;
  return {
    refused: undefined,
    changed: pieces !== undefined,
    body: pieces === undefined ? body : Buffer.concat(pieces).toString(),
    stream,
    model,
    edits: (rewritten.changes?.kinds ?? []).map((what) =>
      Object.assign({ what }, explanations[what](rewritten, rules)),
    ),
  };
}

type Explain = (rewritten: Rewritten, rules: RewriteRules) => Omit<ExplainedEdit, "what">;

const explanations: Readonly<Record<RequestChange, Explain>> = {
  model: ({ model }, rules) => ({ from: model?.asked, to: model?.sent, why: whyModel(rules) }),
  max_tokens: ({ changes }, { maxOutputTokens, maxContextTokens }) => ({
    from: changes?.maxTokens?.from.toString(),
    to: changes?.maxTokens?.to.toString(),
    why:
      `At most MAX_OUTPUT_TOKENS (${maxOutputTokens}), and at most MAX_CONTEXT_TOKENS (${maxContextTokens}) less 512 ` +
      "less a third of the body's characters.",
  }),
  system_prompt_effort: () => ({
    from: undefined,
    to: maximumEffortPrefix,
    why: "output_config.effort selects maximum effort.",
  }),
  system_prompt_language: () => ({
    from: undefined,
    to: hanGuardPrefix,
    why: "PROXY_HAN_GUARD is on, and the conversation is neither Chinese nor Japanese.",
  }),
  thinking: () => ({
    from: undefined,
    to: "chat_template_kwargs",
    why: "PROXY_FAMILY_MODEL is served: the model's name and output_config.effort select its reasoning mode.",
  }),
  stream_usage: ({ usageAdded }, { forceStreamUsage }) => ({
    from: undefined,
    to: usageAdded.continuousUsage ? "include_usage, continuous_usage_stats" : "include_usage",
    why: `PROXY_FORCE_STREAM_USAGE is ${forceStreamUsage}; the client does not see what it adds.`,
  }),
};

const whyModel = ({ servedModel = "", rewriteUnknownModels }: RewriteRules): string =>
  `PROXY_ALIAS_MODEL is ${servedModel}: its name gets this spelling, and a name with a vendor prefix becomes it` +
  (rewriteUnknownModels ? "; PROXY_ALIAS_REWRITE_ALL is on, so any other name does too." : ".");
