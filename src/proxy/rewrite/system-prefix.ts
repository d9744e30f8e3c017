import type { JsonEditor } from "../json/edit.ts";
import { findMember, findString, isLiteral, type JsonNode, type JsonObjectNode } from "../json/read.ts";

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
export function prefixChat(editor: JsonEditor, body: string, root: JsonObjectNode, prefixes: readonly string[]): void {
  const messages = findMember(root, "messages");
  if (messages?.kind !== "array") return;
  const first = messages.elements[0];
  if (first?.kind === "object" && isSystemRole(findString(body, findMember(first, "role")))) {
    prefixMember(editor, body, first, "content", prefixes);
  } else {
    editor.prependElement(messages, JSON.stringify({ role: "system", content: prefixes.join(separator) }));
  }
}

/** The same for a messages body, whose system text is its member `system`. */
export function prefixMessages(
  editor: JsonEditor,
  body: string,
  root: JsonObjectNode,
  prefixes: readonly string[],
): void {
  prefixMember(editor, body, root, "system", prefixes);
}

/** Either role holds instructions; OpenAI's reasoning models use the second. */
export function isSystemRole(role: string | undefined): boolean {
  return role === "system" || role === "developer";
}

function prefixMember(
  editor: JsonEditor,
  body: string,
  owner: JsonObjectNode,
  name: string,
  prefixes: readonly string[],
): void {
  const text = prefixes.join(separator);
  const given = findMember(owner, name);
  if (given === undefined) editor.addMember(owner, name, JSON.stringify(text));
  else if (isLiteral(body, given, "null")) editor.replace(given, JSON.stringify(text));
  else if (given.kind === "string") editor.prependText(given, isEmptyString(given) ? text : text + separator);
  // Backends join parts without a separator, so the empty line is in the part.
  else if (given.kind === "array") {
    editor.prependElement(given, JSON.stringify({ type: "text", text: text + separator }));
  }
}

function isEmptyString(string: JsonNode): boolean {
  return string.end - string.start === 2;
}
