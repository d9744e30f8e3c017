import type { CapExemption } from "./caps.ts";
import { createRewriter, type ModelNames, type Rewritten } from "./rewrite.ts";
import type { RewriteRules } from "./rules.ts";
import { hanGuardPrefix, maximumEffortPrefix } from "./system-prefix.ts";
import type { RequestChange } from "../../domain/requests.ts";

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
  /** What is usually changed and here is not. */
  kept: Pick<ExplainedEdit, "what" | "why">[];
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
    return { refused: "invalid_json", changed: false, body, stream: false, model: undefined, edits: [], kept: [] };
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
    kept: listKept(rewritten, rules),
  };
}

type Explain = (rewritten: Rewritten, rules: RewriteRules) => Omit<ExplainedEdit, "what">;

const explanations: Readonly<Record<RequestChange, Explain>> = {
  model: ({ model }, rules) => ({ from: model?.asked, to: model?.sent, why: whyModel(rules) }),
  max_tokens: ({ changes, capExemption }, rules) => ({
    from: changes?.maxTokens?.from.toString(),
    to: changes?.maxTokens?.to.toString(),
    why: whyCapped(rules, capExemption),
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
    why:
      `PROXY_FORCE_STREAM_USAGE is ${forceStreamUsage}; ` +
      (usageAdded.includeUsage
        ? "the client does not see what it adds."
        : "the client's stream_options do not refuse the usage, so it gets the usage at the end."),
  }),
};

function whyCapped({ maxOutputTokens, maxContextTokens }: RewriteRules, exemption: CapExemption | undefined): string {
  const byContext = `MAX_CONTEXT_TOKENS (${maxContextTokens}) less 512 less a third of the body's characters`;
  return exemption === undefined
    ? `At most MAX_OUTPUT_TOKENS (${maxOutputTokens}), and at most ${byContext}.`
    : `At most ${byContext}. ${whyYields(maxOutputTokens, exemption)}.`;
}

const whyYields = (maxOutputTokens: number, { budget }: CapExemption): string =>
  `MAX_OUTPUT_TOKENS (${maxOutputTokens}) does not apply, because it is not above thinking.budget_tokens (${budget})`;

function listKept({ changes, capExemption }: Rewritten, { maxOutputTokens }: RewriteRules): Explanation["kept"] {
  if (capExemption === undefined || changes?.maxTokens !== undefined) return [];
  const why = capExemption.fitsContext
    ? `${whyYields(maxOutputTokens, capExemption)}, and the context has room for what the request asks for.`
    : `The context leaves no more than thinking.budget_tokens (${capExemption.budget}), and backends refuse a limit that ` +
      "is not above it.";
  return [{ what: "max_tokens", why }];
}

const whyModel = ({ servedModel = "", rewriteUnknownModels }: RewriteRules): string =>
  `PROXY_ALIAS_MODEL is ${servedModel}: its name gets this spelling, and a name with a vendor prefix becomes it` +
  (rewriteUnknownModels ? "; PROXY_ALIAS_REWRITE_ALL is on, so any other name does too." : ".");
