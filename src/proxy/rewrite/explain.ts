import type { CapExemption } from "./tokens.ts";
import type { ClientContext } from "./client-rules.ts";
import { createRewriter, type Rewritten, hanGuardPrefix, maximumEffortPrefix, streamUsages } from "./rewrite.ts";
import type { ModelNames } from "./model-names.ts";
import type { Catalog, Model, Target } from "../../domain/models.ts";
import type { Explanation, RequestChange } from "../../domain/requests.ts";

/** Rewrites a body as the proxy would, and forwards nothing. */
export async function explainRewrite(
  path: string,
  body: string,
  names: ModelNames,
  client?: ClientContext,
): Promise<Explanation> {
  const rules = { names, streamUsage: streamUsages.asSet, hasKeyRules: false };
  const rewritten = await createRewriter(rules)(path, new TextEncoder().encode(body), client);
  if ("refused" in rewritten) return refusedAs("invalid_json", body);
  const { pieces, stream, model, target } = rewritten;
  if (target.candidates.length === 0) return refusedAs("model_not_found", body);
  return {
    refused: undefined,
    changed: pieces !== undefined,
    body: pieces === undefined ? body : Buffer.concat(pieces).toString(),
    stream,
    model,
    candidates: target.candidates,
    edits: [
      ...(rewritten.changes?.kinds ?? []),
      ...(rewritten.marksFullContext === true ? (["full_context_code"] as const) : []),
    ].map((what) => Object.assign({ what }, explanations[what](rewritten, names.catalog))),
    kept: listKept(rewritten, names.catalog),
  };
}

const refusedAs = (refused: Explanation["refused"], body: string): Explanation => ({
  refused,
  changed: false,
  body,
  stream: false,
  model: undefined,
  candidates: [],
  edits: [],
  kept: [],
});

type Explain = (rewritten: Rewritten, catalog: Catalog) => Omit<Explanation["edits"][number], "what">;

/** By a client rule. */
function mended(from: string | undefined, to: string | undefined, reason: string): Explain {
  return ({ target }) => {
    const isAuto = target.rules.clientRules === "auto";
    const rule = isAuto
      ? "CLIENT_RULES is auto, and this client needs it in front of this engine"
      : "CLIENT_RULES names it";
    return { from, to, why: `${rule}: ${reason}.` };
  };
}

const explanations: Readonly<Record<RequestChange, Explain>> = {
  model: ({ model, target }, catalog) => ({ from: model?.asked, to: model?.sent, why: whyModel(catalog, target) }),
  max_tokens: (rewritten, catalog) => ({
    from: rewritten.changes?.maxTokens?.from.toString(),
    to: rewritten.changes?.maxTokens?.to.toString(),
    why: whyCapped(rewritten, catalog),
  }),
  system_prompt_effort: () => ({
    from: undefined,
    to: maximumEffortPrefix,
    why: "output_config.effort selects maximum effort.",
  }),
  system_prompt_language: ({ target }, catalog) => ({
    from: undefined,
    to: hanGuardPrefix,
    why: `${settingsOf(target, catalog).hanGuard}, and the conversation is neither Chinese nor Japanese.`,
  }),
  thinking: ({ target }, catalog) => ({
    from: undefined,
    to: "chat_template_kwargs",
    why: `${settingsOf(target, catalog).reasoning}: the model's name and output_config.effort select its reasoning mode.`,
  }),
  stream_usage: ({ usageAdded, target }, catalog) => ({
    from: undefined,
    to:
      (usageAdded.continuousUsage ? "include_usage, continuous_usage_stats" : "include_usage") +
      (usageAdded.timedChoices === undefined ? "" : ", timings_per_token"),
    why:
      `${settingsOf(target, catalog).usage}; ` +
      (usageAdded.includeUsage
        ? "the client does not see what it adds."
        : "the client's stream_options do not refuse the usage, so it gets the usage at the end."),
  }),
  system_turns_to_user: mended(
    "system",
    "user",
    "templates refuse system turns inside a conversation, or engines read all of it again",
  ),
  drop_billing_line: mended(
    "x-anthropic-billing-header: …",
    undefined,
    "the line is for Anthropic, and no cached prompt that begins with another one matches",
  ),
  developer_to_system: mended(
    "developer",
    "system",
    "templates know no developer, and some refuse a second system message, so one holds all texts",
  ),
  function_tools_only: mended(
    undefined,
    "tools",
    "the engine refuses tools of other types; functions of namespaces stay under their own names",
  ),
  full_context_code: mended(
    undefined,
    '"code":"context_length_exceeded"',
    "not the request is edited, but a refusal in an engine's words for a full context: by the code, the client can make room",
  ),
};

/** The settings that hold, as the operator writes them: in the environment, or in the file. */
function settingsOf({ model, rules }: Target, { file }: Catalog) {
  const { contextTokens, maxOutputTokens, forceStreamUsage } = rules;
  const isOfFile = file !== undefined && model !== undefined;
  const called = (setting: string, member: string): string => (isOfFile ? `${member} of ${model.name}` : setting);
  return {
    context: `${called("MAX_CONTEXT_TOKENS", "context_tokens")} (${contextTokens})`,
    output: `${called("MAX_OUTPUT_TOKENS", "max_output_tokens")} (${maxOutputTokens})`,
    hanGuard: isOfFile ? `han_guard of ${model.name} is true` : "PROXY_HAN_GUARD is on",
    reasoning: isOfFile ? `reasoning of ${model.name} is true` : "PROXY_FAMILY_MODEL is served",
    usage: `${called("PROXY_FORCE_STREAM_USAGE", "force_stream_usage")} is ${forceStreamUsage}`,
  };
}

function whyCapped({ target, capExemption }: Rewritten, catalog: Catalog): string {
  const { context, output } = settingsOf(target, catalog);
  const byContext = `${context} less 512 less a third of the body's characters`;
  return capExemption === undefined
    ? `At most ${output}, and at most ${byContext}.`
    : `At most ${byContext}. ${whyYields(output, capExemption)}.`;
}

const whyYields = (output: string, { budget }: CapExemption): string =>
  `${output} does not apply, because it is not above thinking.budget_tokens (${budget})`;

function listKept({ changes, capExemption, target }: Rewritten, catalog: Catalog): Explanation["kept"] {
  if (capExemption === undefined || changes?.maxTokens !== undefined) return [];
  const { output } = settingsOf(target, catalog);
  const why = capExemption.fitsContext
    ? `${whyYields(output, capExemption)}, and the context has room for what the request asks for.`
    : `The context leaves no more than thinking.budget_tokens (${capExemption.budget}), and backends refuse a limit that ` +
      "is not above it.";
  return [{ what: "max_tokens", why }];
}

function whyModel({ file, models: [served], defaultModel }: Catalog, { model }: Target): string {
  if (file !== undefined) return whyFileModel(model, defaultModel);
  return (
    `PROXY_ALIAS_MODEL is ${served?.name ?? ""}: its name gets this spelling, and a name with a vendor prefix becomes it` +
    (defaultModel !== undefined ? "; PROXY_ALIAS_REWRITE_ALL is on, so any other name does too." : ".")
  );
}

function whyFileModel(model: Model | undefined, defaultModel: string | undefined): string {
  if (model === undefined) return "The backend spells the name of this model so.";
  const names = `Backends call ${model.name} ${model.servedAs}; its name and its aliases become that`;
  return model.name === defaultModel
    ? `${names}, and so does a name that no model has: it is default_model.`
    : `${names}.`;
}
