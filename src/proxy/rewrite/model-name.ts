import type { RewriteRules } from "./rules.ts";

export type ModelRules = Pick<
  RewriteRules,
  "servedModel" | "reasoningModel" | "rewriteUnknownModels" | "vendorPrefixes"
>;

export interface Model {
  /** The name that is sent to the backend. */
  name: string;
  /** The name requests a response without a think block from the reasoning model. */
  nonThinking: boolean;
}

/** Whether the served model is the reasoning model; upper and lower case do not matter. */
export function isReasoningModelServed({
  servedModel,
  reasoningModel,
}: Pick<ModelRules, "servedModel" | "reasoningModel">): boolean {
  return servedModel !== undefined && reasoningModel !== undefined && sameName(servedModel, reasoningModel);
}

export function nonThinkingAlias(reasoningModel: string): string {
  return `${reasoningModel}-nonthinking`;
}

/** Matches without regard to case; a name that is not rewritten stays exactly as submitted. */
export function resolveModel(submitted: string, rules: ModelRules): Model {
  const { servedModel } = rules;
  if (servedModel === undefined) return { name: submitted, nonThinking: false };
  const name = matchable(submitted);
  if (name === matchable(servedModel)) return { name: servedModel, nonThinking: false };
  if (isReasoningModelServed(rules) && /-nonthink(?:ing)?$/.test(name)) return { name: servedModel, nonThinking: true };
  const isVendor = rules.vendorPrefixes.some((prefix) => name.startsWith(`${prefix.toLowerCase()}-`));
  return { name: isVendor || rules.rewriteUnknownModels ? servedModel : submitted, nonThinking: false };
}

export function sameName(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

const longContextMark = "[1m]";

/** Coding agents append this to a name as their own mark of a long context window; some append it twice. */
function matchable(name: string): string {
  const lower = name.toLowerCase();
  let end = lower.length;
  while (lower.endsWith(longContextMark, end)) end -= longContextMark.length;
  return lower.slice(0, end);
}
