import { parseJson } from "../../domain/json.ts";
import { isString, latin1, utf8 } from "../json/bytes.ts";
import type { JsonEditor } from "../json/edit.ts";
import { copyValue, createSlot, type JsonSlot, type Span } from "../json/slots.ts";

/** A client rule about one member of a body: what it watches, and what it makes of it. */
export interface BodyRule {
  member: "system" | "tools";
  slot: JsonSlot;
  edit: (editor: JsonEditor, bytes: Uint8Array) => void;
}

const billingHeader = "x-anthropic-billing-header:";

/** The recorded lines have 74 characters. */
const maxHeadBytes = 4096;

/**
 * `drop_billing_line`: the first text of `system` goes if it is Claude Code's billing line, and its first line goes if more
 * follows. Such a block goes with its comma.
 *
 * `x-anthropic-billing-header: cc_version=2.1.330.930; cc_entrypoint=sdk-cli;` (recorded) is addressed to Anthropic. Versions
 * up to 2.1.178 change it with each request: 0.1 % of the prompt's blocks stay. Later ones change it between
 * conversations, whose shared instructions of 40 to 80 kB then share nothing where the system prompt comes first, and 55 %
 * instead of 89 % where the tools do.
 */
export function dropBillingLine(): BodyRule {
  const [type, text, first] = [createSlot(), createSlot(), createSlot()];
  /** Where the block after the dropped ones starts; undefined if none was dropped, or no block follows. */
  let next: number | undefined;
  let dropped: number | undefined;
  /** Billing lines in front of the text of a block that stays. */
  let lines: Span | undefined;
  let isHead = true;

  const block = createSlot({
    members: { type, text },
    onValue(bytes) {
      if (slot.count === 1) copyValue(block, first);
      if (!isHead) return;
      const end = block.kind === "object" && isString(bytes, type, "text") ? billingEnd(bytes, text) : undefined;
      if (end !== undefined && end === text.end - 1) {
        dropped = block.end;
        return;
      }
      isHead = false;
      if (dropped !== undefined) next = block.start;
      if (end !== undefined) lines = { start: text.start + 1, end };
    },
  });
  const slot: JsonSlot = createSlot({
    element: block,
    onStart() {
      [next, dropped, lines, isHead] = [undefined, undefined, undefined, true];
    },
  });

  function edit(editor: JsonEditor, bytes: Uint8Array): void {
    if (slot.kind === "string") {
      const end = billingEnd(bytes, slot);
      if (end === slot.end - 1) editor.clear(slot);
      else if (end !== undefined) editor.replace({ start: slot.start + 1, end }, "");
    }
    if (slot.kind !== "array") return;
    if (next !== undefined) editor.replace({ start: first.start, end: next }, "");
    else if (dropped !== undefined) editor.clear(slot);
    if (lines !== undefined) editor.replace(lines, "");
  }
  return { member: "system", slot, edit };
}

/** @returns where the billing lines in front of a text end: at its closing quote, or at its next line; undefined if it has none */
function billingEnd(bytes: Uint8Array, { kind, start, end }: JsonSlot): number | undefined {
  if (kind !== "string") return undefined;
  const content = latin1(bytes, start + 1, Math.min(end - 1, start + 1 + maxHeadBytes));
  let at = 0;
  while (content.startsWith(billingHeader, at)) {
    lineEnd.lastIndex = at;
    const line = lineEnd.exec(content);
    if (line !== null) at = line.index + line[0].length;
    else if (start + 1 + content.length === end - 1) at = content.length;
    else break;
  }
  return at === 0 ? undefined : start + 1 + at;
}

/** What a line of a JSON string has up to its end, and the escape that ends it. */
const lineEnd = /(?:[^\\]|\\(?!n|u000a)[^])*?\\(?:n|u000a)/giy;

/** Far more than any client sends: a longer list stays as it is. */
const maxToolsBytes = 256 * 1024;

/**
 * `function_tools_only`: tools of types other than `function` are left out of `tools`, which is written anew then. The functions
 * of a `namespace` stay under their own names; one whose name another tool has too is left out with it.
 *
 * Codex (0.169, recorded) sends tools of the types `namespace` and `web_search`. llama.cpp refuses them ("'type' of tool must
 * be 'function'", llama.cpp #20156), and vLLM for some models (vLLM #49493). Codex answers "unsupported call" to a function
 * that is called without its namespace, and the model goes on; its settings `multi_agent` and `web_search` end both types.
 */
export function functionToolsOnly(): BodyRule {
  const slot = createSlot();
  function edit(editor: JsonEditor, bytes: Uint8Array): void {
    if (slot.kind !== "array" || slot.end - slot.start > maxToolsBytes) return;
    const tools = parseJson(utf8(bytes, slot.start, slot.end));
    if (!Array.isArray(tools) || tools.every(isKept)) return;
    editor.replace(slot, JSON.stringify(keepFunctions(tools)));
  }
  return { member: "tools", slot, edit };
}

/** The members of an object; none of what is no object. */
const membersOf = (value: unknown): Readonly<Record<string, unknown>> => Object(value) as Record<string, unknown>;

const isFunction = (tool: unknown): boolean => membersOf(tool)["type"] === "function";
/** What has no type is for the backend to judge. */
const isKept = (tool: unknown): boolean => isFunction(tool) || typeof membersOf(tool)["type"] !== "string";

function keepFunctions(tools: readonly unknown[]): unknown[] {
  const nameOf = (tool: unknown): unknown => membersOf(tool)["name"];
  const functionsOf = (tool: unknown): unknown[] => {
    const { type, tools: inner } = membersOf(tool);
    return type === "namespace" && Array.isArray(inner) ? inner.filter(isFunction) : [];
  };
  const all = tools.flatMap((tool) => (isKept(tool) ? [tool] : functionsOf(tool)));
  const uses = Map.groupBy(all.filter(isFunction), nameOf);
  const isAlone = (tool: unknown): boolean => typeof nameOf(tool) === "string" && uses.get(nameOf(tool))?.length === 1;
  return tools.flatMap((tool) => (isKept(tool) ? [tool] : functionsOf(tool).filter(isAlone)));
}
