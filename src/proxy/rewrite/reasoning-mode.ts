import { findJson, findString, isLiteral } from "../json/bytes.ts";
import type { JsonEditor } from "../json/edit.ts";
import { createSlot, type JsonSlot } from "../json/slots.ts";

type TemplateKwargs = ReturnType<typeof createTemplateKwargs>;

export function createTemplateKwargs() {
  const [thinking, reasoningEffort] = [createSlot(), createSlot()];
  /** The older name of `thinking`. */
  const enableThinking = createSlot();
  const members = { thinking, enable_thinking: enableThinking, reasoning_effort: reasoningEffort };
  return { slot: createSlot({ members }), thinking, enableThinking, reasoningEffort };
}

type OutputConfig = ReturnType<typeof createOutputConfig>;

export function createOutputConfig() {
  const effort = createSlot();
  return { slot: createSlot({ members: { effort } }), effort };
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
  none: { thinking: false },
  high: { thinking: true, reasoning_effort: "high" },
  max: { thinking: true, reasoning_effort: "max" },
} as const satisfies Record<ReasoningMode, object>;

/**
 * Adds the missing members of `chat_template_kwargs`; a value that is not an object is left to the backend.
 * @returns whether any was missing
 */
export function fillTemplateKwargs(
  editor: JsonEditor,
  bytes: Uint8Array,
  root: JsonSlot,
  { slot, thinking, enableThinking, reasoningEffort }: TemplateKwargs,
  mode: ReasoningMode,
): boolean {
  const before = editor.edits.length;
  if (slot.kind === "absent") editor.addMember(root, "chat_template_kwargs", JSON.stringify(defaults[mode]));
  if (slot.kind !== "object") return editor.edits.length > before;
  if (thinking.kind === "absent") {
    const given = enableThinking.kind === "absent" ? String(mode !== "none") : findJson(bytes, enableThinking);
    if (given !== undefined) editor.addMember(slot, "thinking", given);
  }
  if (mode !== "none" && reasoningEffort.kind === "absent") editor.addMember(slot, "reasoning_effort", `"${mode}"`);
  return editor.edits.length > before;
}

/** The client turned thinking off, under either name, so that an effort has no effect. */
export function hasThinkingOff(bytes: Uint8Array, { slot, thinking, enableThinking }: TemplateKwargs): boolean {
  if (slot.kind !== "object") return false;
  return isLiteral(bytes, thinking.kind === "absent" ? enableThinking : thinking, "false");
}
