import { isString } from "../json/decode.ts";
import { copyValue, createSlot, type JsonSlot, type JsonValue } from "../json/slots.ts";
import { type ConversationMessage, maxUserMessages, type Sample, systemSample, userSample } from "./language.ts";
import { createLatestTexts, createTextSlot, decodeText, type Text } from "./text-slot.ts";

/** Slots for a body's conversation, of any length: only the places of what decides on its language are kept. */
export interface ConversationSlots {
  messages: JsonSlot;
  system: JsonSlot;
  /** Undefined if `messages` is not a list, or empty. */
  findFirst(): FirstMessage | undefined;
  /**
   * The messages that are read for the language: the member `system`, the first two if they are system messages, the
   * latest of the user. Tools and images are left out.
   */
  list(bytes: Uint8Array): ConversationMessage[];
  /** For the next body. */
  clear: () => void;
}

export interface FirstMessage {
  value: JsonValue;
  isSystem: boolean;
  content: JsonValue;
}

/** Among how many of the first messages a system prompt is looked for. */
const leadingMessages = 2;

export function createConversationSlots(): ConversationSlots {
  const system = createTextSlot();
  const role = createSlot();
  const content = createTextSlot();
  const first = { value: createSlot(), isSystem: false, content: createSlot() };
  /** Undefined for a message of another role. */
  const leading: (Text | undefined)[] = [];
  const userTexts = createLatestTexts(maxUserMessages);

  /** Either role holds instructions; OpenAI's reasoning models use the second. */
  const isSystem = (bytes: Uint8Array): boolean =>
    isString(bytes, role, "system") || isString(bytes, role, "developer");

  function keepFirst(bytes: Uint8Array): void {
    copyValue(message, first.value);
    copyValue(content.slot, first.content);
    first.isSystem = isSystem(bytes);
  }

  function keepLeading(bytes: Uint8Array, isUser: boolean): void {
    if (isSystem(bytes)) leading.push(content.getText());
    else if (isUser || isString(bytes, role, "assistant")) leading.push(undefined);
  }

  function clear(): void {
    first.value.kind = "absent";
    leading.length = 0;
    userTexts.clear();
  }

  const message = createSlot({
    members: { role, content: content.slot },
    onValue(bytes) {
      if (messages.count === 1) keepFirst(bytes);
      if (message.kind !== "object" || content.slot.kind === "absent") return;
      const isUser = isString(bytes, role, "user");
      if (leading.length < leadingMessages) keepLeading(bytes, isUser);
      if (isUser) userTexts.keep(content);
    },
  });
  const messages = createSlot({ element: message, onStart: clear });

  return {
    messages,
    system: system.slot,
    findFirst: () => (first.value.kind === "absent" ? undefined : first),
    list(bytes) {
      const list: ConversationMessage[] = [];
      if (system.slot.kind !== "absent") list.push(messageOf(bytes, "system", system.getText(), systemSample));
      for (const text of leading) {
        list.push(text === undefined ? otherMessage : messageOf(bytes, "system", text, systemSample));
      }
      for (const text of userTexts.list()) list.push(messageOf(bytes, "user", text, userSample));
      return list;
    },
    clear,
  };
}

const otherMessage: ConversationMessage = { role: "other", text: "" };

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
