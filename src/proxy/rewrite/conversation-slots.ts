import { isString, contentOf, decodeHead, decodeString, decodeTail } from "../json/bytes.ts";
import { copyValue, createSlot, type JsonSlot, type JsonValue, type Span } from "../json/slots.ts";
import { type ConversationMessage, maxUserMessages, type Sample, systemSample, userSample } from "./language.ts";

/** Gets a message, its role and its content, which the slots hold only during the call. */
export type OnMessage = (bytes: Uint8Array, message: JsonSlot, role: JsonSlot, content: JsonSlot) => void;

export interface FirstMessage {
  value: JsonValue;
  isSystem: boolean;
  content: JsonValue;
}

/** Either role holds instructions; OpenAI's reasoning models use the second. */
export const isInstruction = (bytes: Uint8Array, role: JsonValue): boolean =>
  isString(bytes, role, "system") || isString(bytes, role, "developer");

/** Among how many of the first messages a system prompt is looked for. */
const leadingMessages = 2;

/**
 * Slots for a body's conversation, of any length: only the places of what decides on its language are kept.
 * @param onMessage called with each message
 */
export function createConversationSlots(onMessage?: OnMessage) {
  const [system, content] = [createTextSlot(), createTextSlot()];
  const role = createSlot();
  const first = { value: createSlot(), isSystem: false, content: createSlot() };
  /** Undefined for a message of another role. */
  const leading: (Text | undefined)[] = [];
  /** The latest, and at most as many again before them. */
  const userTexts: Text[] = [];

  function clear(): void {
    first.value.kind = "absent";
    leading.length = 0;
    userTexts.length = 0;
  }

  const message = createSlot({
    members: { role, content: content.slot },
    onValue(bytes) {
      onMessage?.(bytes, message, role, content.slot);
      if (messages.count === 1) {
        copyValue(message, first.value);
        copyValue(content.slot, first.content);
        first.isSystem = isInstruction(bytes, role);
      }
      if (message.kind !== "object" || content.slot.kind === "absent") return;
      const isUser = isString(bytes, role, "user");
      if (leading.length < leadingMessages) {
        if (isInstruction(bytes, role)) leading.push(content.getText());
        else if (isUser || isString(bytes, role, "assistant")) leading.push(undefined);
      }
      if (!isUser) return;
      const text = content.getText();
      // An empty part counts as one byte.
      if (lengthOf(text) > 1 && userTexts.push(text) === 2 * maxUserMessages) userTexts.splice(0, maxUserMessages);
    },
  });
  const messages = createSlot({ element: message, onStart: clear });

  return {
    messages,
    system: system.slot,
    /** Its value is absent if `messages` is not a list, or empty. */
    first,
    /**
     * The messages that are read for the language: the member `system`, the first two if they are system messages, the
     * latest of the user. Tools and images are left out.
     */
    list(bytes: Uint8Array): ConversationMessage[] {
      const list: ConversationMessage[] = [];
      if (system.slot.kind !== "absent") list.push(messageOf(bytes, "system", system.getText(), systemSample));
      for (const text of leading) {
        list.push(text === undefined ? otherMessage : messageOf(bytes, "system", text, systemSample));
      }
      for (const text of userTexts.slice(-maxUserMessages)) list.push(messageOf(bytes, "user", text, userSample));
      return list;
    },
    /** Forgets the texts before the next body is read. */
    clear,
  };
}

const otherMessage: ConversationMessage = { role: "other", text: "" };

/** The text is decoded when it is first read, because most texts are not. */
function messageOf(bytes: Uint8Array, role: string, spans: Text, sample: Sample): ConversationMessage {
  let text: string | undefined;
  const length = lengthOf(spans);
  const isWhole = length <= 8 * (sample.head + sample.tail);
  return {
    role,
    get text() {
      return (text ??= isWhole
        ? spans.map((part) => decodeString(bytes, part)).join("\n")
        : decodeEnds(bytes, spans, sample));
    },
    raw: {
      length,
      get parts() {
        return isWhole ? spans.map(({ start, end }) => bytes.subarray(start, end)) : undefined;
      },
    },
  };
}

/** With a byte between two parts. */
function lengthOf(text: Text): number {
  let { length } = text;
  for (const { start, end } of text) length += end - start;
  return length;
}

/** One string or the strings of several parts, without their quotes. */
type Text = readonly Span[];

const noText: Text = [];
const noPart: Span = { start: 0, end: 0 };
/** If a text has more parts, those in the middle are not read. */
const maxParts = 64;

/** A slot for a text as messages hold it: a string, or an array whose parts of type `text` are strings. */
function createTextSlot() {
  const type = createSlot();
  const text = createSlot();
  let parts: Span[] = [];
  const part = createSlot({
    members: { type, text },
    onValue(bytes) {
      // A message that was read before keeps its list.
      if (slot.count === 1) parts = [];
      if (part.kind !== "object" || !isString(bytes, type, "text")) return;
      const content = text.kind === "string" ? contentOf(text) : noPart;
      if (parts.length < maxParts) parts.push(content);
      else parts.copyWithin(maxParts / 2, maxParts / 2 + 1)[maxParts - 1] = content;
    },
  });
  const slot = createSlot({ element: part });
  /** Empty if the value in the slot has no text. Never changed after its array has ended. */
  const getText = (): Text => {
    if (slot.kind === "string") return [contentOf(slot)];
    return slot.kind === "array" && slot.count > 0 ? parts : noText;
  };
  return { slot, getText };
}

/** Decodes as much of a long text as its sample needs. */
function decodeEnds(bytes: Uint8Array, text: Text, { head, tail }: Sample): string {
  const start = joinUntil(head + 1, text, (part) => decodeHead(bytes, part, head + 1));
  const end = joinUntil(tail, text.toReversed(), (part) => decodeTail(bytes, part, tail)).toReversed();
  return `${start.join("\n").slice(0, head + 1)}${end.join("\n").slice(-tail)}`;
}

function joinUntil(length: number, text: Text, decode: (part: Span) => string): string[] {
  const decoded: string[] = [];
  let missing = length;
  for (const part of text) {
    if (missing <= 0) break;
    const piece = decode(part);
    decoded.push(piece);
    missing -= piece.length + 1;
  }
  return decoded;
}
