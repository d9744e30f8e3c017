import type { KeyId } from "../../domain/keys.ts";
import type { Conversation } from "../../domain/backends.ts";
import type { Span } from "../json/slots.ts";
import type { Opening } from "../rewrite/opening.ts";

/**
 * Headers in which clients name a session of theirs; the first that is there counts. Claude Code sends the first since
 * 2.1.86, Codex the second (with an underscore until 0.140), opencode the third, and other agents the last.
 */
const sessionHeaders = [
  "x-claude-code-session-id",
  "session-id",
  "session_id",
  "x-session-affinity",
  "x-session-id",
] as const;

/** A number that stands for a text: 52 bits, so that a number holds it exactly. */
export const hash = (text: string | Uint8Array, seed: number): number =>
  Number(Bun.hash.xxHash3(text, BigInt(seed)) & 0xf_ffff_ffff_ffffn);

const hashParts = (bytes: Uint8Array, parts: readonly Span[], seed: number): number => {
  let hashed = seed;
  for (const { start, end } of parts) hashed = hash(bytes.subarray(start, end), hashed);
  return hashed;
};

/**
 * Which conversation a request belongs to, by what its client calls it, else by how it begins; always together with the
 * key, so that nobody aims at what others have cached.
 */
export function conversationOf(headers: Headers, keyId: KeyId, body: Uint8Array, opening: Opening): Conversation {
  const { tools, system, user } = opening;
  const instructions = [...tools, ...system];
  const prefix = instructions.length === 0 ? undefined : hashParts(body, instructions, 0);
  const session = findSession(headers) ?? opening.name;
  if (session !== undefined) return { name: hash(session, keyId), prefix };
  return { name: user.length === 0 ? undefined : hashParts(body, [...instructions, ...user], keyId), prefix };
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
