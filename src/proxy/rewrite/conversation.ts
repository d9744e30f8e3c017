import { findMember, findString, type JsonNode, type JsonObjectNode, objectShape, type Shape } from "../json/read.ts";
import type { ConversationMessage } from "./language.ts";
import { isSystemRole } from "./system-prefix.ts";

const value: Shape = {};
/** A string, or an array of parts. */
const contentShape: Shape = { elements: objectShape({ type: value, text: value }) };

export const messagesShape: Shape = { elements: objectShape({ role: value, content: contentShape }) };
export const systemShape = contentShape;

/**
 * What people, the operator and the model said, in order; tools and images have no language of their own. A turn's text
 * is unescaped when it is first read, since whoever judges a long conversation looks at a sample.
 */
export function listTurns(body: string, root: JsonObjectNode): ConversationMessage[] {
  const turns: ConversationMessage[] = [];
  const system = findMember(root, "system");
  if (system !== undefined) turns.push(turn(body, "system", system));
  const messages = findMember(root, "messages");
  for (const message of messages?.kind === "array" ? messages.elements : []) {
    if (message.kind !== "object") continue;
    const role = findString(body, findMember(message, "role"));
    const content = findMember(message, "content");
    if (content === undefined) continue;
    if (isSystemRole(role)) turns.push(turn(body, "system", content));
    else if (role === "user" || role === "assistant") turns.push(turn(body, role, content));
  }
  return turns;
}

function turn(body: string, role: string, content: JsonNode): ConversationMessage {
  let text: string | undefined;
  return {
    role,
    get text() {
      text ??= contentText(body, content);
      return text;
    },
  };
}

function contentText(body: string, content: JsonNode): string {
  if (content.kind !== "array") return findString(body, content) ?? "";
  return content.elements
    .filter((part) => part.kind === "object")
    .filter((part) => findString(body, findMember(part, "type")) === "text")
    .map((part) => findString(body, findMember(part, "text")) ?? "")
    .join("\n");
}
