import type { JsonEditor } from "../json/edit.ts";
import { isLiteral } from "../json/bytes.ts";
import type { JsonValue } from "../json/slots.ts";
import type { ConversationSlots, FirstMessage } from "./conversation-slots.ts";

export const maximumEffortPrefix =
  "Reasoning effort: maximum. Before you answer, think the task through to the end: split it into parts, test every " +
  "assumption, weigh alternatives, look for edge cases, and verify each step and the final result. Never shorten the " +
  "reasoning to save time or tokens.";

export const hanGuardPrefix =
  "Write in the language of the conversation, and use no Chinese characters (Han ideographs) in your reasoning or your " +
  "answer. Exceptions: quotations, code, file contents and names that contain them, and anything the user explicitly " +
  "wants in them.";

const separator = "\n\n";

/** Adds the prefixes to the system text of a chat completions body: a leading system or developer message, or a new one. */
export function prefixChat(
  editor: JsonEditor,
  bytes: Uint8Array,
  messages: JsonValue,
  first: FirstMessage | undefined,
  prefixes: readonly string[],
): void {
  if (first?.isSystem === true) prefixMember(editor, bytes, first.value, "content", first.content, prefixes);
  else editor.prependElement(messages, JSON.stringify({ role: "system", content: prefixes.join(separator) }));
}

/** The same for a messages body, whose system text is its member `system`. */
export function prefixMessages(
  editor: JsonEditor,
  bytes: Uint8Array,
  root: JsonValue,
  { system }: ConversationSlots,
  prefixes: readonly string[],
): void {
  prefixMember(editor, bytes, root, "system", system, prefixes);
}

function prefixMember(
  editor: JsonEditor,
  bytes: Uint8Array,
  owner: JsonValue,
  name: string,
  given: JsonValue,
  prefixes: readonly string[],
): void {
  const text = prefixes.join(separator);
  if (given.kind === "absent") editor.addMember(owner, name, JSON.stringify(text));
  else if (isLiteral(bytes, given, "null")) editor.replace(given, JSON.stringify(text));
  else if (given.kind === "string") editor.prependText(given, text, separator);
  // Backends join parts without a separator, so the empty line is in the part.
  else if (given.kind === "array") {
    editor.prependElement(given, JSON.stringify({ type: "text", text: text + separator }));
  }
}
