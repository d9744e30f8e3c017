import { isString } from "../json/decode.ts";
import { copyValue, createSlot, type JsonSlot, type JsonValue } from "../json/slots.ts";
import { type ConversationMessage, maxUserMessages, type Sample, systemSample, userSample } from "./language.ts";
import { createLatestTexts, createTextSlot, decodeText, type Text } from "./text-slot.ts";

/** Slots for a body's conversation, of any length: only what decides on its language is kept. */
export interface ConversationSlots {
  messages: JsonSlot;
  system: JsonSlot;
  /** Undefined if `messages` is not a list, or empty. */
  findFirst(): FirstMessage | undefined;
  /**
   * The messages that are read for the language: the member `system`, the first two if they are system messages, the
   * latest of the user. Tools and images are left out.
   */
  list(): ConversationMessage[];
}

export interface FirstMessage {
  value: JsonValue;
  isSystem: boolean;
  content: JsonValue;
}

/** Among how many of the first messages a system prompt is looked for. */
const leadingMessages = 2;
const otherMessage: ConversationMessage = { role: "other", text: "" };

export function createConversationSlots(bytes: Uint8Array): ConversationSlots {
  const system = createTextSlot(bytes);
  const role = createSlot();
  const content = createTextSlot(bytes);
  const first = { value: createSlot(), isSystem: false, content: createSlot() };
  let leading: ConversationMessage[] = [];
  const userTexts = createLatestTexts(maxUserMessages);

  /** Either role holds instructions; OpenAI's reasoning models use the second. */
  const isSystem = (): boolean => isString(bytes, role, "system") || isString(bytes, role, "developer");

  function keepFirst(): void {
    copyValue(message, first.value);
    copyValue(content.slot, first.content);
    first.isSystem = isSystem();
  }

  function keepLeading(isUser: boolean): void {
    if (isSystem()) leading.push(messageOf(bytes, "system", content.getText(), systemSample));
    else if (isUser || isString(bytes, role, "assistant")) leading.push(otherMessage);
  }

  const message = createSlot({
    members: { role, content: content.slot },
    onValue() {
      if (messages.count === 1) keepFirst();
      if (message.kind !== "object" || content.slot.kind === "absent") return;
      const isUser = isString(bytes, role, "user");
      if (leading.length < leadingMessages) keepLeading(isUser);
      if (isUser) userTexts.keep(content);
    },
  });
  const messages = createSlot({
    element: message,
    onStart() {
      first.value.kind = "absent";
      if (leading.length > 0) leading = [];
      userTexts.clear();
    },
  });

  return {
    messages,
    system: system.slot,
    findFirst: () => (first.value.kind === "absent" ? undefined : first),
    list() {
      const list = system.slot.kind === "absent" ? [] : [messageOf(bytes, "system", system.getText(), systemSample)];
      return [...list, ...leading, ...userTexts.list().map((text) => messageOf(bytes, "user", text, userSample))];
    },
  };
}

/** The text is decoded when it is first read, because most texts are not. */
function messageOf(bytes: Uint8Array, role: string, spans: Text, sample: Sample): ConversationMessage {
  let text: string | undefined;
  return {
    role,
    get text() {
      text ??= decodeText(bytes, spans, sample);
      return text;
    },
  };
}
