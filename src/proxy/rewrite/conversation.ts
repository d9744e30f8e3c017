import { findMember, findString, type JsonNode, type JsonObjectNode, objectShape, type Shape } from "../json/read.ts";
import type { ConversationMessage } from "./language.ts";
import { isSystemRole } from "./system-prefix.ts";

const value: Shape = {};
/** A string, or an array of parts. */
const contentShape: Shape = { elements: objectShape({ type: value, text: value }) };

export const messagesShape: Shape = { elements: objectShape({ role: value, content: contentShape }) };
export const systemShape = contentShape;

/**
 * The messages of users, the operator and the model in order, without tools and images, which have no language. A text is
 * unescaped when it is first read, because only a sample of a long conversation is.
 */
export function listMessages(body: string, root: JsonObjectNode): ConversationMessage[] {
  const list: ConversationMessage[] = [];
  const system = findMember(root, "system");
  if (system !== undefined) list.push(messageOf(body, "system", system));
  const messages = findMember(root, "messages");
  for (const message of messages?.kind === "array" ? messages.elements : []) {
    if (message.kind !== "object") continue;
    const role = findString(body, findMember(message, "role"));
    const content = findMember(message, "content");
    if (content === undefined) continue;
    if (isSystemRole(role)) list.push(messageOf(body, "system", content));
    else if (role === "user" || role === "assistant") list.push(messageOf(body, role, content));
  }
  return list;
}

function messageOf(body: string, role: string, content: JsonNode): ConversationMessage {
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
