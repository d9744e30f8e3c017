import { findString, indexOfBytes, isString } from "../json/bytes.ts";
import type { OnMessage } from "./conversation.ts";
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
  /** The first message of the user. */
  user: readonly Span[];
}

/** Slots for a body's opening, of any length. */
export interface OpeningSlots {
  /** Of the body. Whoever watches `messages` and `system` for something else puts its own slots there. */
  members: Readonly<Record<string, JsonSlot>>;
  /** To be called with each message, if they are in a slot of others. */
  onMessage: OnMessage;
  /** What was read into the slots. @param system the slot of that member, if it is not the one in `members` */
  read(bytes: Uint8Array, system?: JsonSlot): Opening;
  /** Forgets the messages before the next body is read. */
  clear(): void;
}

/** So much of each part tells openings apart; more of it would cost time that no cache gives back. */
const maxPartBytes = 32 * 1024;

/** Longer names are cut: they are only compared. */
const maxNameLength = 256;

/** How many of the first messages may be instructions. */
const maxLeading = 4;

export function createOpeningSlots(): OpeningSlots {
  const [ownSystem, instructions, tools] = [createSlot(), createSlot(), createSlot()];
  const [promptCacheKey, userId, conversationId] = [createSlot(), createSlot(), createSlot()];
  // A name, or an object with its id.
  const conversation = createSlot({ members: { id: conversationId } });
  const metadata = createSlot({ members: { user_id: userId } });
  const [input, messages] = [createMessagesSlot(keep), createMessagesSlot(keep)];
  const leading: Span[] = [];
  const user = createSlot();
  let areInstructionsOver = false;

  function keep(bytes: Uint8Array, message: JsonSlot, role: JsonSlot): void {
    if (user.kind !== "absent" || message.kind !== "object") return;
    if (isString(bytes, role, "user")) copyValue(message, user);
    else if (!areInstructionsOver && isInstruction(bytes, role) && leading.length < maxLeading)
      leading.push(spanOf(message));
    else areInstructionsOver = true;
  }

  return {
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
    onMessage: keep,
    read(bytes, system = ownSystem) {
      const given = conversation.kind === "object" ? conversationId : conversation;
      const first = user.kind === "absent" && input.kind === "string" ? input : user;
      return {
        name:
          nameOf(bytes, promptCacheKey) ??
          nameOf(bytes, given) ??
          (metadata.kind === "object" ? sessionOf(nameOf(bytes, userId)) : undefined),
        tools: partsOf([tools]),
        system: partsOf([system, instructions, ...leading]).flatMap((part) => withoutVolatileLine(bytes, part)),
        user: partsOf([first]),
      };
    },
    clear() {
      user.kind = "absent";
      leading.length = 0;
      areInstructionsOver = false;
    },
  };
}

function createMessagesSlot(onMessage: OnMessage): JsonSlot {
  const role = createSlot();
  const message: JsonSlot = createSlot({ members: { role }, onValue: (bytes) => onMessage(bytes, message, role) });
  return createSlot({ element: message });
}

const isInstruction = (bytes: Uint8Array, role: JsonValue): boolean =>
  isString(bytes, role, "system") || isString(bytes, role, "developer");

const spanOf = ({ start, end }: Span): Span => ({ start, end });

/** Those that are there, each cut to what is looked at. */
const partsOf = (values: readonly (Span & { kind?: JsonValue["kind"] })[]): Span[] =>
  values
    .filter(({ kind }) => kind !== "absent")
    .map(({ start, end }) => ({ start, end: Math.min(end, start + maxPartBytes) }));

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
 * Lines of a system prompt that differ between requests, or between conversations that are the same otherwise, by how they
 * begin. Claude Code's accounts for its requests: new with each one in 2.1.120 to 2.1.177, with each conversation since.
 */
const volatileLines: readonly Uint8Array[] = ["x-anthropic-billing-header:"].map((text) => Buffer.from(text));

/** They stand at the beginning. */
const maxVolatileOffset = 1024;

/** @returns the part before the line, and the part after it */
function withoutVolatileLine(bytes: Uint8Array, part: Span): readonly Span[] {
  const { start, end } = part;
  const head = bytes.subarray(start, Math.min(end, start + maxVolatileOffset));
  for (const beginning of volatileLines) {
    const at = indexOfBytes(head, beginning, 0);
    if (at !== -1)
      return [
        { start, end: start + at },
        { start: endOfLine(bytes, start + at, end), end },
      ];
  }
  return [part];
}

/** Where a line in a JSON string ends: at the escape for a new line, or with the string. */
function endOfLine(bytes: Uint8Array, from: number, end: number): number {
  for (let at = from; at < end; at += 1) {
    const byte = bytes[at];
    if (byte === quote) return at;
    if (byte !== backslash) continue;
    if (bytes[at + 1] === letterN) return at;
    at += 1;
  }
  return end;
}

const [quote, backslash, letterN] = [0x22, 0x5c, 0x6e];
