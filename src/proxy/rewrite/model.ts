import type { RewriteRules } from "./rules.ts";
import { findJson, findString, isLiteral } from "../json/bytes.ts";
import type { JsonEditor } from "../json/edit.ts";
import type { JsonSlot } from "../json/slots.ts";

type ModelRules = Pick<RewriteRules, "servedModel" | "reasoningModel" | "rewriteUnknownModels" | "vendorPrefixes">;

interface Model {
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
  let isOurs = rules.rewriteUnknownModels;
  for (const prefix of rules.vendorPrefixes) isOurs ||= name.startsWith(`${prefix.toLowerCase()}-`);
  return { name: isOurs ? servedModel : submitted, nonThinking: false };
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

export interface TemplateKwargs {
  slot: JsonSlot;
  thinking: JsonSlot;
  /** The older name of `thinking`. */
  enableThinking: JsonSlot;
  reasoningEffort: JsonSlot;
}

export interface OutputConfig {
  slot: JsonSlot;
  effort: JsonSlot;
}

/** How much the reasoning family is to think. */
export type ReasoningMode = "high" | "max" | "none";

/** A non-thinking name overrides any effort; an unknown or missing effort is high. */
export function reasoningMode(bytes: Uint8Array, { slot, effort }: OutputConfig, nonThinking: boolean): ReasoningMode {
  if (nonThinking) return "none";
  const name = slot.kind === "object" ? findString(bytes, effort) : undefined;
  return name === "max" || name === "xhigh" ? "max" : "high";
}

const defaults = {
  none: { thinking: "false", effort: undefined },
  high: { thinking: "true", effort: '"high"' },
  max: { thinking: "true", effort: '"max"' },
} as const satisfies Record<ReasoningMode, object>;

/** Adds the missing members of `chat_template_kwargs`; a value that is not an object is left to the backend. */
export function fillTemplateKwargs(
  editor: JsonEditor,
  bytes: Uint8Array,
  root: JsonSlot,
  { slot, thinking, enableThinking, reasoningEffort }: TemplateKwargs,
  mode: ReasoningMode,
): void {
  const { thinking: thinkingJson, effort } = defaults[mode];
  if (slot.kind === "absent") {
    const effortMember = effort === undefined ? "" : `,"reasoning_effort":${effort}`;
    editor.addMember(root, "chat_template_kwargs", `{"thinking":${thinkingJson}${effortMember}}`);
    return;
  }
  if (slot.kind !== "object") return;
  if (thinking.kind === "absent") {
    const given = enableThinking.kind === "absent" ? thinkingJson : findJson(bytes, enableThinking);
    if (given !== undefined) editor.addMember(slot, "thinking", given);
  }
  if (effort !== undefined && reasoningEffort.kind === "absent") editor.addMember(slot, "reasoning_effort", effort);
}

/** The client turned thinking off, under either name, so that an effort has no effect. */
export function hasThinkingOff(bytes: Uint8Array, { slot, thinking, enableThinking }: TemplateKwargs): boolean {
  if (slot.kind !== "object") return false;
  return isLiteral(bytes, thinking.kind === "absent" ? enableThinking : thinking, "false");
}
