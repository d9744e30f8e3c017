import { findString, isString, latin1 } from "../json/bytes.ts";
import type { JsonEditor } from "../json/edit.ts";
import { copyValue, createSlot, type JsonSlot, type Span } from "../json/slots.ts";
import type { BodyRule } from "./rules.ts";

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

interface Tool extends Span {
  /** Undefined if it has none, or one that cannot be compared. */
  name: string | undefined;
  isKept: boolean;
  /** What a namespace holds. */
  functions: Tool[];
}

/** Together with the functions of namespaces. A body with more stays as it is. */
const maxTools = 4096;
const maxNameBytes = 512;

/**
 * `function_tools_only`: tools of types other than `function` are left out of `tools`. The functions of a `namespace` stay
 * under their own names; one whose name another tool has too is left out with it.
 *
 * Codex (0.169, recorded) sends tools of the types `namespace` and `web_search`. llama.cpp refuses them ("'type' of tool must
 * be 'function'", llama.cpp #20156), and vLLM for some models (vLLM #49493). Codex answers "unsupported call" to a function
 * that is called without its namespace, and the model goes on; its settings `multi_agent` and `web_search` end both types.
 */
export function functionToolsOnly(): BodyRule {
  let tools: Tool[] = [];
  let functions: Tool[] = [];
  let count = 0;

  const readTool = (bytes: Uint8Array, { value, type, name }: ToolSlots, isOurs: boolean): Tool => {
    count += 1;
    const isShort = name.end - name.start <= maxNameBytes;
    const isFunction = value.kind === "object" && isString(bytes, type, "function");
    return {
      start: value.start,
      end: value.end,
      name: isFunction && isShort ? findString(bytes, name) : undefined,
      // What has no type is for the backend to judge.
      isKept: isOurs ? isFunction : isFunction || type.kind !== "string",
      functions: [],
    };
  };
  const inner = createToolSlots({}, (bytes) => {
    if (count < maxTools) functions.push(readTool(bytes, inner, true));
    else count = Infinity;
  });
  const list = createSlot({ element: inner.value, onStart: () => void (functions = []) });
  const outer = createToolSlots({ tools: list }, (bytes) => {
    if (count >= maxTools) {
      count = Infinity;
      return;
    }
    const tool = readTool(bytes, outer, false);
    const isNamespace = !tool.isKept && isString(bytes, outer.type, "namespace") && list.kind === "array";
    tools.push(isNamespace ? { ...tool, functions } : tool);
  });
  const slot = createSlot({
    element: outer.value,
    onStart: () => void ([tools, functions, count] = [[], [], 0]),
  });

  function edit(editor: JsonEditor): void {
    if (slot.kind !== "array" || count > maxTools) return;
    if (tools.every(({ isKept }) => isKept)) return;
    dropAmbiguous(tools);
    keepOnly(editor, tools);
  }
  return { member: "tools", slot, edit };
}

interface ToolSlots {
  value: JsonSlot;
  type: JsonSlot;
  name: JsonSlot;
}

function createToolSlots(members: Record<string, JsonSlot>, onValue: (bytes: Uint8Array) => void): ToolSlots {
  const [type, name] = [createSlot(), createSlot()];
  return { value: createSlot({ members: { ...members, type, name }, onValue }), type, name };
}

/** A function of a namespace stays only if nothing else has its name. */
function dropAmbiguous(tools: readonly Tool[]): void {
  const uses = new Map<string, number>();
  for (const tool of tools) {
    for (const { name, isKept } of [tool, ...tool.functions]) {
      if (isKept && name !== undefined) uses.set(name, (uses.get(name) ?? 0) + 1);
    }
  }
  for (const { functions } of tools) {
    for (const tool of functions) tool.isKept &&= tool.name !== undefined && uses.get(tool.name) === 1;
  }
}

interface Kept {
  span: Span;
  /** The tool in front of it is kept too, in the same list. */
  isNeighbour: boolean;
}

/** Leaves what is kept in its place, with the text between two that were neighbours. */
function keepOnly(editor: JsonEditor, tools: readonly Tool[]): void {
  const [start, end] = [tools[0]?.start ?? 0, tools.at(-1)?.end ?? 0];
  let from = start;
  for (const { span, isNeighbour } of listKept(tools)) {
    if (!isNeighbour && span.start > from) {
      editor.replace({ start: from, end: span.start }, from === start ? "" : ",");
    }
    from = span.end;
  }
  if (from < end) editor.replace({ start: from, end }, "");
}

function listKept(tools: readonly Tool[]): Kept[] {
  const kept: Kept[] = [];
  for (const [index, tool] of tools.entries()) {
    if (tool.isKept) kept.push({ span: tool, isNeighbour: tools[index - 1]?.isKept === true });
    else kept.push(...listKept(tool.functions));
  }
  return kept;
}
