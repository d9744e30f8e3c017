import type { ChoiceReason, Conversation } from "../domain/backends.ts";
import type { LastTurn, Trace } from "../domain/cache-loss.ts";
import type { KeyId } from "../domain/keys.ts";
import { createMemory, type MemorySize } from "./memory.ts";

/** What a request is routed by. Sizes are characters of its body: the one unit that the choice knows. */
export interface RoutedRequest {
  keyId: KeyId;
  conversation: Conversation;
  characters: number;
}

/** What a backend would have to read of a request, and why not all of it. */
export interface ExpectedWork {
  characters: number;
  reason: Extract<ChoiceReason, "session" | "prefix" | "load">;
}

/** What decides among backends that are equal: the same in each process and instance. */
export const affinityOf = (keyId: KeyId, { name, prefix }: Conversation): string => String(name ?? prefix ?? keyId);

/** What is expected where nothing is remembered. */
export const nothingKnown = (): ExpectedWork => ({ characters: 0, reason: "load" });

/** Remembers which backend has read what, and so has it cached, as far as one can tell from outside. */
export interface Affinity {
  /** @returns what each backend would have to read of the request */
  expect(request: RoutedRequest): (backend: string) => ExpectedWork;
  /** What becomes of the conversation's cache if the request goes to this backend; undefined: it is not known. */
  lastTurn(request: RoutedRequest, backend: string): LastTurn | undefined;
  /** The request goes to this backend. */
  remember(backend: string, request: RoutedRequest): void;
  /** It was out, or has restarted: its cache is empty. */
  forget(backend: string): void;
}

/**
 * The part of a body that a backend reads anew if it has only its instructions and tools: in the model of
 * `tests/bench/routing.ts` 0.5 to 0.9 serve the most, and with 0.7 no set of it serves much less than the best.
 */
const shareBesidePrefix = 0.7;

/** A turn adds at least a message, and a request without a body is work too. */
const leastCharacters = 400;

/** Prefixes are for all keys, and share one owner, which no key is. */
const everyone = -1;

/** A backend in this memory: a number that a new life of it does not share. */
const maxLives = 2 ** 12;
const maxCharacters = 2 ** 40;

/** In a trace that is remembered, hashes are short: they only have to tell what changed. */
const [partHashes, messageHashes] = [2 ** 10, 2 ** 20];

export function createAffinity(size: MemorySize): Affinity {
  const [memory, traces] = [createMemory(size), createMemory(size)];
  /** By number; undefined once it is forgotten. */
  const lives: (string | undefined)[] = [];
  const lifeOf = new Map<string, number>();
  let begun = 0;

  function live(backend: string): number {
    const known = lifeOf.get(backend);
    if (known !== undefined) return known;
    const life = begun++ % maxLives;
    lifeOf.set(backend, life);
    lives[life] = backend;
    return life;
  }

  /** Whether a prefix was at a backend is an entry of its own. */
  const prefixAt = (prefix: number, life: number): number => (prefix + life * 0x9e37_79b1) % Number.MAX_SAFE_INTEGER;

  function findLast({
    keyId,
    conversation: { name },
  }: RoutedRequest): { backend: string; characters: number } | undefined {
    const found = name === undefined ? undefined : memory.get(keyId, name);
    if (found === undefined) return undefined;
    const backend = lives[found % maxLives];
    return backend === undefined ? undefined : { backend, characters: Math.floor(found / maxLives) };
  }

  return {
    expect(request) {
      const { characters, conversation } = request;
      const last = findLast(request);
      return (backend) => {
        if (last?.backend === backend)
          return { characters: Math.max(leastCharacters, characters - last.characters), reason: "session" };
        const life = lifeOf.get(backend);
        const hasPrefix =
          life !== undefined &&
          conversation.prefix !== undefined &&
          memory.get(everyone, prefixAt(conversation.prefix, life)) !== undefined;
        return hasPrefix
          ? { characters: characters * shareBesidePrefix, reason: "prefix" }
          : { characters: Math.max(leastCharacters, characters), reason: "load" };
      };
    },
    lastTurn({ keyId, conversation: { trace }, characters }, backend) {
      const found = trace && traces.get(keyId, trace.thread);
      if (trace === undefined || found === undefined) return undefined;
      const before = lives[found % maxLives];
      return before === undefined ? undefined : compare(trace, found, { characters, isElsewhere: before !== backend });
    },
    remember(backend, { keyId, conversation: { name, prefix, trace }, characters }) {
      const life = live(backend);
      if (trace !== undefined) traces.set(keyId, trace.thread, packTrace(trace, life));
      if (name !== undefined) memory.set(keyId, name, Math.min(characters, maxCharacters) * maxLives + life);
      if (prefix !== undefined) memory.set(everyone, prefixAt(prefix, life), 1);
    },
    forget(backend) {
      const life = lifeOf.get(backend);
      lifeOf.delete(backend);
      if (life !== undefined) lives[life] = undefined;
    },
  };
}

/** Packs a trace into one number, which is what an entry of the memory holds. */
const packTrace = ({ tools, system, messages }: Trace, life: number): number =>
  (((messages.at(-1)?.[0] ?? 0) % messageHashes) * partHashes * partHashes + packParts(tools, system)) * maxLives +
  life;

const packParts = (tools: number, system: number): number => (tools % partHashes) * partHashes + (system % partHashes);

/** @param packed of the turn before */
function compare(
  { tools, system, messages }: Trace,
  packed: number,
  { characters, isElsewhere }: { characters: number; isElsewhere: boolean },
): LastTurn {
  const parts = Math.floor(packed / maxLives) % (partHashes * partHashes);
  const hash = Math.floor(packed / maxLives / (partHashes * partHashes));
  const kept = messages.findLast(([one]) => one % messageHashes === hash);
  const share = kept === undefined ? 1 : Math.max(0, 1 - kept[1] / Math.max(1, characters));
  // What the client changed would cost the cache anywhere.
  if (Math.floor(parts / partHashes) !== tools % partHashes) return { share, lost: "tools_changed" };
  if (parts % partHashes !== system % partHashes) return { share, lost: "system_changed" };
  if (kept === undefined) return { share, lost: "messages_changed" };
  return { share, lost: isElsewhere ? "elsewhere" : undefined };
}
