import type { KeyId } from "../../domain/keys.ts";
import type { Conversation } from "../../domain/backends.ts";
import type { RequestChanges } from "../../domain/requests.ts";
import type { Opening } from "../rewrite/opening.ts";
import { lastingPartsOf, traceOf, viewsOf } from "./trace.ts";

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
