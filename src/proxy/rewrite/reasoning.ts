import type { JsonEditor } from "../json/edit.ts";
import { findMember, findString, isLiteral, type JsonObjectNode } from "../json/read.ts";

/** How much the reasoning family is to think. */
export type ReasoningMode = "high" | "max" | "none";

/** A non-thinking name overrides any effort; an unknown or missing effort is high. */
export function reasoningMode(body: string, root: JsonObjectNode, nonThinking: boolean): ReasoningMode {
  if (nonThinking) return "none";
  const config = findMember(root, "output_config");
  const effort = config?.kind === "object" ? findString(body, findMember(config, "effort")) : undefined;
  return effort === "max" || effort === "xhigh" ? "max" : "high";
}

const templateKwargs = {
  none: { thinking: "false" },
  high: { thinking: "true", reasoning_effort: '"high"' },
  max: { thinking: "true", reasoning_effort: '"max"' },
} as const satisfies Record<ReasoningMode, Record<string, string>>;

/** Adds the missing members of `chat_template_kwargs`; a value that is not an object is left to the backend. */
export function fillTemplateKwargs(editor: JsonEditor, body: string, root: JsonObjectNode, mode: ReasoningMode): void {
  const defaults = Object.entries(templateKwargs[mode]);
  const given = findMember(root, "chat_template_kwargs");
  if (given === undefined) {
    const members = defaults.map(([name, json]) => `"${name}":${json}`);
    editor.addMember(root, "chat_template_kwargs", `{${members.join(",")}}`);
    return;
  }
  if (given.kind !== "object") return;
  for (const [name, json] of defaults) {
    if (findMember(given, name) !== undefined) continue;
    // `enable_thinking` is the older name of `thinking`.
    const older = name === "thinking" ? findMember(given, "enable_thinking") : undefined;
    editor.addMember(given, name, older === undefined ? json : body.slice(older.start, older.end));
  }
}

/** The client turned thinking off, under either name, so that an effort has no effect. */
export function hasThinkingOff(body: string, root: JsonObjectNode): boolean {
  const given = findMember(root, "chat_template_kwargs");
  if (given?.kind !== "object") return false;
  return isLiteral(body, findMember(given, "thinking") ?? findMember(given, "enable_thinking"), "false");
}
