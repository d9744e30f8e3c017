import { findString, indexOfBytes, isString, latin1 } from "../json/bytes.ts";
import { isInstruction, type OnMessage } from "./conversation-slots.ts";
import { copyValue, createSlot, type JsonSlot, type JsonValue, type Span } from "../json/slots.ts";

/**
 * How a body's conversation begins, which stays the same from turn to turn: what a backend has cached of the one, it can use
 * for the next. By the places of these parts in the body's bytes.
 */
export interface Opening {
  /** What the client itself calls the conversation. */
  name: string | undefined;
  tools: readonly Span[];
  /** Without the lines that change from request to request. */
  system: readonly Span[];
  /** Those lines. */
  volatile: readonly Span[];
  /** The first message of the user. */
  user: readonly Span[];
  /** All of them; undefined if there are too many to tell what changed. */
  messages: readonly MessageSpan[] | undefined;
}

/** The bytes of a message before its content, of that, and after it. */
export interface MessageSpan extends Span {
  /** Undefined if it has none, such as a tool's call. */
  readonly content: Span | undefined;
  /** The one text of it, whether that is a string or the only part of a list; else all of it. */
  readonly text: Span;
}

/** Longer names are cut: they are only compared. */
const maxNameLength = 256;

/** How many of the first messages may be instructions. */
const maxLeading = 4;

/** So many messages are remembered of a body. Agents compact a conversation long before. */
const maxMessages = 4096;

/** Slots for a body's opening, of any length. */
export function createOpeningSlots() {
  const conversationId = createSlot();
  const conversation = createSlot({ members: { id: conversationId } });
  const [ownSystem, instructions, tools] = [createSlot(), createSlot(), createSlot()];
  const [promptCacheKey, userId] = [createSlot(), createSlot()];
  const metadata = createSlot({ members: { user_id: userId } });
  const [input, messages] = [createMessagesSlot(keep), createMessagesSlot(keep)];
  const leading: Span[] = [];
  const user = createSlot();
  let areInstructionsOver = false;
  let spans: MessageSpan[] = [];

  function keep(bytes: Uint8Array, message: JsonSlot, role: JsonSlot, content: JsonSlot): void {
    if (spans.length <= maxMessages) spans.push(messageSpanOf(message, content));
    if (user.kind !== "absent" || message.kind !== "object") return;
    if (isString(bytes, role, "user")) copyValue(message, user);
    else if (!areInstructionsOver && isInstruction(bytes, role) && leading.length < maxLeading)
      leading.push(spanOf(message));
    else areInstructionsOver = true;
  }

  return {
    /** The members of the body. Whoever watches `messages` and `system` for something else puts its own slots there. */
    members: {
      system: ownSystem,
      instructions,
      tools,
      metadata,
      conversation,
      messages,
      input,
      prompt_cache_key: promptCacheKey,
    },
    /** To be called with each message, if they are in a slot of others. */
    onMessage: keep,
    /** What was read into the slots. @param system the slot of that member, if it is not the one in `members` */
    read(bytes: Uint8Array, system = ownSystem): Opening {
      const given = conversation.kind === "object" ? conversationId : conversation;
      const first = user.kind === "absent" && input.kind === "string" ? input : user;
      return {
        name:
          nameOf(bytes, promptCacheKey) ??
          nameOf(bytes, given) ??
          (metadata.kind === "object" ? sessionOf(nameOf(bytes, userId)) : undefined),
        tools: partsOf([tools]),
        ...splitVolatile(bytes, partsOf([system, instructions, ...leading])),
        user: partsOf([first]),
        messages: spans.length > maxMessages ? undefined : spans,
      };
    },
    /** Forgets the messages before the next body is read. */
    clear(): void {
      user.kind = "absent";
      leading.length = 0;
      spans = [];
      areInstructionsOver = false;
    },
  };
}

function createMessagesSlot(onMessage: OnMessage): JsonSlot {
  const [role, text] = [createSlot(), createSlot()];
  const content = createSlot({ element: createSlot({ members: { text } }) });
  const members = { role, content };
  const message: JsonSlot = createSlot({ members, onValue: (bytes) => onMessage(bytes, message, role, content) });
  return createSlot({ element: message });
}

/** Clients send the same text now as a string, now as a list of one part: to a backend it is the same. */
function textOf(content: JsonSlot): JsonSlot {
  if (content.kind !== "array" || content.count !== 1) return content;
  const text = content.element?.members.find(({ name }) => name === "text")?.slot;
  return text?.kind === "string" ? text : content;
}

const messageSpanOf = ({ start, end }: Span, content: JsonSlot): MessageSpan =>
  content.kind === "absent"
    ? { start, end, content: undefined, text: { start, end } }
    : { start, end, content: spanOf(content), text: spanOf(textOf(content)) };

const spanOf = ({ start, end }: Span): Span => ({ start, end });

/** Those that are there. */
const partsOf = (values: readonly (Span & { kind?: JsonValue["kind"] })[]): Span[] =>
  values.filter(({ kind }) => kind !== "absent").map(spanOf);

function nameOf(bytes: Uint8Array, value: JsonValue): string | undefined {
  const name = findString(bytes, value);
  return name === undefined || name === "" ? undefined : name.slice(0, maxNameLength);
}

/**
 * The session in `metadata.user_id` of the Messages API: Claude Code sends JSON text with `session_id` (2.1.78 and later),
 * or `user_…_session_` and an id before. Other clients name their user there, who has many conversations.
 */
function sessionOf(userId: string | undefined): string | undefined {
  return userId === undefined ? undefined : /(?:"session_id"\s*:\s*"|_session_)([\w-]+)/.exec(userId)?.[1];
}

/**
 * A line of a system prompt that differs between requests, or between conversations that are the same otherwise. Claude Code's
 * accounts for its requests: new with each one in 2.1.120 to 2.1.177, with each conversation since. It ends at the escape for a
 * new line, or with the string.
 */
const volatileLine = /x-anthropic-billing-header:(?:[^"\\]|\\[^n])*/;
const volatileStart = Buffer.from("x-anthropic-billing-header:");

/** It stands at the beginning, and is short. */
const [maxVolatileOffset, maxVolatileLength] = [1024, 4096];

function splitVolatile(bytes: Uint8Array, parts: readonly Span[]): Pick<Opening, "system" | "volatile"> {
  const volatile: Span[] = [];
  const system = parts.flatMap((part) => {
    const { start, end } = part;
    const at = indexOfBytes(bytes.subarray(start, Math.min(end, start + maxVolatileOffset)), volatileStart, 0);
    if (at === -1) return [part];
    const from = start + at;
    const [text = ""] = volatileLine.exec(latin1(bytes, from, Math.min(end, from + maxVolatileLength))) ?? [];
    const line = { start: from, end: from + text.length };
    volatile.push(line);
    return [
      { start, end: line.start },
      { start: line.end, end },
    ];
  });
  return { system, volatile };
}
