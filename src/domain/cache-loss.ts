import { cachedTokensOf, type CountedUsage, wholeInput } from "./usage.ts";

/**
 * Why the input of a turn did not come from a cache, though the turn before it was read: another backend got it, or it
 * no longer begins as that one did. `evicted`: none of these, so the backend itself no longer had it.
 */
export const cacheLosses = ["elsewhere", "tools_changed", "system_changed", "messages_changed", "evicted"] as const;

export type CacheLoss = (typeof cacheLosses)[number];

/** What a cache compares, as hashes: enough to tell what changed from turn to turn, and nothing of the texts. */
export interface Trace {
  /** The conversation: of one session, subagents have others. */
  thread: number;
  tools: number;
  system: number;
  /**
   * After each of the latest messages but the last: a hash of all up to there, and how many characters of messages follow
   * it. What was sent before has one of these as its last.
   */
  messages: readonly TracedMessage[];
}

export type TracedMessage = readonly [hash: number, charactersAfter: number];

/** What is known of the turn before when a request is sent. */
export interface LastTurn {
  /** The part of this request that it had in common with that one, as far as sizes of bodies tell. */
  share: number;
  /** What is known to cost the cache; undefined: nothing is. */
  lost: Exclude<CacheLoss, "evicted"> | undefined;
}

/** A cache has blocks, and a short prompt may end within its first. */
const leastTokens = 500;

/**
 * @param reporters the backends that have ever reported cached input; this one is added. Others may evict or not: of
 * them, nothing cached and nothing reported look the same
 * @returns why less than half of what might have come from the cache did; undefined if more did, or nothing can be told
 */
export function findCacheLoss(
  { share, lost }: LastTurn,
  backend: string,
  usage: CountedUsage | undefined,
  reporters: Set<string>,
): CacheLoss | undefined {
  if (usage === undefined) return undefined;
  const cached = cachedTokensOf(usage);
  if (cached > 0) reporters.add(backend);
  const expected = wholeInput(usage) * share;
  if (expected < leastTokens || cached >= expected / 2) return undefined;
  return lost ?? (reporters.has(backend) ? "evicted" : undefined);
}
