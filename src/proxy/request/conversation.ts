import type { KeyId } from "../../domain/keys.ts";
import type { Conversation } from "../../domain/backends.ts";
import type { RequestChanges } from "../../domain/requests.ts";
import type { MessageSpan, Opening } from "../rewrite/opening.ts";
import type { Trace, TracedMessage } from "../../domain/cache-loss.ts";
import { indexOfBytes, isWhiteSpace } from "../json/bytes.ts";
import type { Span } from "../json/slots.ts";

/** Headers in which clients name a session of theirs, each with its source; the first that is there counts. */
const sessionHeaders = [
  // Claude Code since 2.1.86.
  "x-claude-code-session-id",
  // Codex.
  "session-id",
  // Codex until 0.140. nginx drops it unless told otherwise.
  "session_id",
  // opencode.
  "x-session-affinity",
  // Mistral's Vibe.
  "x-affinity",
  // Open WebUI, with ENABLE_FORWARD_USER_INFO_HEADERS.
  "x-openwebui-chat-id",
  // Routers of others document it for their clients: vllm-router's `consistent_hash` reads it.
  "x-session-id",
] as const;

/** A number that stands for a text: 52 bits, so that a number holds it exactly. */
export const hash = (text: string | Uint8Array, seed: number): number =>
  Number(Bun.hash.xxHash3(text, BigInt(seed)) & 0xf_ffff_ffff_ffffn);

/** So much tells conversations apart; more would cost time that no cache gives back. */
const [maxPartBytes, maxHashedBytes] = [32 * 1024, 64 * 1024];

function hashParts(parts: readonly Uint8Array[], seed: number): number {
  let hashed = seed;
  let left = maxHashedBytes;
  for (const part of parts) {
    const length = Math.min(part.length, maxPartBytes, left);
    hashed = hash(part.subarray(0, length), hashed);
    left -= length;
  }
  return hashed;
}

/**
 * Which conversation a request belongs to, by what its client calls it, else by how it begins; always together with the
 * key, so that no client aims at what others have cached.
 * @param cacheOf who shares what the engine has cached; undefined: everyone
 */
export function conversationOf(
  headers: Headers,
  keyId: KeyId,
  body: Uint8Array,
  opening: Opening,
  changes: RequestChanges | undefined,
  cacheOf?: string,
): Conversation {
  const { tools, system } = opening;
  const user = firstOfUser(body, opening);
  const instructions = viewsOf(body, [...tools, ...system]);
  const prefix =
    instructions.length === 0 ? undefined : hashParts(instructions, cacheOf === undefined ? 0 : hash(cacheOf, 0));
  const session = findSession(headers) ?? opening.name;
  const named = session === undefined ? undefined : hash(session, keyId);
  const thread = user.length === 0 ? named : hashParts(user, named ?? keyId);
  const begun = thread === undefined ? undefined : thread + (prefix ?? 0);
  // A session has several: each of its agents has a task of its own, with which it begins.
  const [name, agent] = named === undefined ? [begun] : [named, begun];
  return { name, agent, prefix, trace: thread === undefined ? undefined : traceOf(thread, body, opening, changes) };
}

function firstOfUser(body: Uint8Array, { user, messages = [] }: Opening): readonly Uint8Array[] {
  const first = messages.find(({ start }) => start === user[0]?.start);
  return first === undefined ? viewsOf(body, user) : lastingPartsOf(body, first);
}

/** A longer name is cut: it is only compared. */
const maxNameLength = 256;

function findSession(headers: Headers): string | undefined {
  for (const name of sessionHeaders) {
    const session = headers.get(name);
    if (session !== null && session !== "") return session.slice(0, maxNameLength);
  }
  return undefined;
}

/** A longer text is known by its beginning, its end and its length. */
const maxTracedBytes = 64 * 1024;

/** A turn adds a few messages: an answer, and what its tools returned. */
const maxTraced = 64;

/**
 * What tells whether a body goes on from the one before it. Its texts are not kept, and hashes short enough that nothing can
 * be learnt from them.
 * @param changes what is done to it before a backend gets it
 */
function traceOf(
  thread: number,
  body: Uint8Array,
  { tools, system, volatile, messages }: Opening,
  changes: RequestChanges | undefined,
): Trace | undefined {
  if (messages === undefined) return undefined;
  const kinds = changes?.kinds ?? [];
  const added = kinds.filter((kind) => kind.startsWith("system_prompt_"));
  const sent = kinds.includes("drop_billing_line") ? system : [...system, ...volatile];
  return {
    thread,
    tools: hashAll(viewsOf(body, tools), 0),
    system: hashAll(viewsOf(body, sent), Bun.hash.xxHash32(added.join())),
    messages: traceMessages(body, messages),
  };
}

const viewsOf = (body: Uint8Array, spans: readonly Span[]): readonly Uint8Array[] =>
  spans.map(({ start, end }) => body.subarray(start, end));

/** None is 0, which stands for no message. */
function traceMessages(body: Uint8Array, messages: readonly MessageSpan[]): TracedMessage[] {
  const [first, last] = [messages[0], messages.at(-1)];
  if (first === undefined || last === undefined) return [[0, 0]];
  const traced: TracedMessage[] = [[0, last.end - first.start]];
  let hashed = 0;
  for (const message of messages.slice(0, -1)) {
    hashed = hashAll(lastingPartsOf(body, message), hashed) || 1;
    traced.push([hashed, last.end - message.end]);
  }
  return traced.slice(-maxTraced);
}

/**
 * What of a message is the same at each turn. Clients send the same text now as a string, now as a list of one part, and
 * mark now this message, now that one for caches: to a backend it is the same.
 */
function lastingPartsOf(body: Uint8Array, { start, end, content, text }: MessageSpan): readonly Uint8Array[] {
  if (content === undefined) return [withoutMarks(body.subarray(start, end))];
  const [before, after] = [body.subarray(start, content.start), body.subarray(content.end, end)];
  return [before, withoutMarks(body.subarray(text.start, text.end)), after];
}

const mark = Buffer.from('"cache_control"');

/** A request may have four. A hostile message has millions, each of which would be cut out. */
const maxMarks = 16;

/** @returns a copy if there are any */
function withoutMarks(bytes: Uint8Array): Uint8Array {
  let at = indexOfBytes(bytes, mark, 0);
  if (at === -1) return bytes;
  const parts: Uint8Array[] = [];
  let from = 0;
  for (; at !== -1 && parts.length < maxMarks; at = indexOfBytes(bytes, mark, from)) {
    parts.push(bytes.subarray(from, endBefore(bytes, from, at)));
    // Its value is an object without further ones.
    const closes = bytes.indexOf(closingBrace, at);
    from = closes === -1 ? bytes.length : closes + 1;
  }
  parts.push(bytes.subarray(from));
  return Buffer.concat(parts);
}

/** Where the text ends before a member, without the comma in front of that. */
function endBefore(bytes: Uint8Array, from: number, member: number): number {
  let end = member;
  while (end > from && isWhiteSpace(bytes[end - 1])) end -= 1;
  return end > from && bytes[end - 1] === comma ? end - 1 : end;
}

const [comma, closingBrace] = [0x2c, 0x7d];

function hashAll(parts: readonly Uint8Array[], seed: number): number {
  let hashed = seed;
  for (const part of parts) {
    if (part.length <= maxTracedBytes) hashed = Bun.hash.xxHash32(part, hashed);
    else {
      const half = maxTracedBytes / 2;
      hashed = Bun.hash.xxHash32(part.subarray(0, half), (hashed ^ part.length) >>> 0);
      hashed = Bun.hash.xxHash32(part.subarray(-half), hashed);
    }
  }
  return hashed;
}
