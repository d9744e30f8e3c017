import type { ChoiceReason, Conversation } from "../domain/backends.ts";
import type { LastTurn, Trace } from "../domain/cache-loss.ts";
import type { Destination } from "../domain/admissions.ts";
import type { KeyId } from "../domain/keys.ts";
import type { ReportedInput } from "../domain/usage.ts";
import { createMemory, type MemorySize } from "./memory.ts";

/** What a request is routed by. */
export type RoutedRequest = Pick<Destination, "model" | "conversation" | "characters"> & { keyId: KeyId };

/** What a backend would have to read of a request, and why not all of it. */
export interface ExpectedWork {
  /** As far as its characters tell. */
  tokens: number;
  /** How many characters it has read of the conversation before; 0 if that was elsewhere. */
  readBefore: number;
  /** The tokens that it costs beyond reading that the conversation leaves where it is cached; see `leavingCosts`. */
  leaving: number;
  reason: Extract<ChoiceReason, "session" | "prefix" | "load">;
}

/** What decides among backends that are equal: the same in each process and instance. */
export const affinityOf = (keyId: KeyId, { name, prefix }: Conversation): string => String(name ?? prefix ?? keyId);

/** What is expected where nothing is remembered. */
export const nothingKnown: ExpectedWork = { tokens: 0, readBefore: 0, leaving: 0, reason: "load" };

/** Remembers which backend has read what, and so has it cached, as far as one can tell from outside. */
export type Affinity = ReturnType<typeof createAffinity>;

/**
 * The part of a body that a backend reads anew if it has only its instructions and tools: in the model of
 * `tests/bench/routing.ts` 0.5 to 0.9 serve the most, and with 0.7 no set of it serves much less than the best.
 */
const shareBesidePrefix = 0.7;

/**
 * A conversation that leaves its cache is read anew, and displaces what others have cached where it goes: if caches there are
 * as full as anywhere, in this many times its size. Without that, conversations change places in each rush: in the model of
 * `tests/bench/routing.ts` 16 % less is served where a backend was away, and with a constant in its place 4 to 8 %. Where
 * backends do not report what they had cached, it is 0: one that lost its cache would be avoided for too long.
 */
const leavingCosts = 2;

/** A turn adds at least a message, and a request without a body is work too. */
const leastTokens = 100;

/** Prefixes are for all keys, and share one owner, which no key is. */
const everyone = -1;

/** A backend in this memory: a number that a new life of it does not share. */
const maxLives = 2 ** 12;
const maxCharacters = 2 ** 40;

/** In a trace that is remembered, hashes are short: they only have to tell what changed. */
const [partHashes, messageHashes] = [2 ** 10, 2 ** 20];

export function createAffinity(size: MemorySize) {
  const [lives, sizes] = [createLives(), createTokenSizes()];
  const traces = createMemory(size);
  const memory = createMemory(size, (value) => {
    const life = lives.of(value);
    if (life !== undefined) life.held -= Math.floor(value / maxLives);
  });

  /** Whether a prefix was at a backend is an entry of its own. */
  const prefixAt = (prefix: number, { number }: Life): number =>
    (prefix + number * 0x9e37_79b1) % Number.MAX_SAFE_INTEGER;

  /** Where the conversation was last, and how much of it was read there: 0 if that was another agent of its session. */
  function findLast({ keyId, conversation: { name, agent } }: RoutedRequest) {
    for (const one of [agent, name]) {
      const found = one === undefined ? undefined : memory.get(keyId, one);
      const life = found === undefined ? undefined : lives.of(found);
      if (life && found !== undefined) return { life, characters: Math.floor(found / maxLives) };
    }
    return undefined;
  }

  return {
    /** How many tokens a request has, by the reports of its model of late. */
    tokensOf: ({ model, characters }: RoutedRequest): number => characters / sizes.of(model),
    /** @returns what each backend would have to read of the request */
    expect(request: RoutedRequest): (backend: string) => ExpectedWork {
      const { characters, conversation, model } = request;
      const [last, perToken] = [findLast(request), sizes.of(model)];
      const whole = Math.max(leastTokens, characters / perToken);
      return (backend) => {
        const life = lives.find(backend);
        const isThere = last !== undefined && last.life === life;
        if (isThere && last.characters > 0) {
          const readBefore = Math.min(characters, last.characters);
          const tokens = Math.max(leastTokens, (characters - readBefore * (life.kept ?? 1)) / perToken);
          return { tokens, readBefore, leaving: 0, reason: "session" };
        }
        const hasPrefix =
          isThere ||
          (life !== undefined &&
            conversation.prefix !== undefined &&
            memory.get(everyone, prefixAt(conversation.prefix, life)) !== undefined);
        const tokens = hasPrefix ? whole * shareBesidePrefix : whole;
        const leaves = life !== undefined && last?.life.kept !== undefined && last.characters > 0;
        const leaving = leaves ? leavingCosts * lives.fullness(life) * tokens : 0;
        const reason = isThere ? "session" : hasPrefix ? "prefix" : "load";
        return { tokens, readBefore: 0, leaving, reason };
      };
    },
    /**
     * A request that went to this backend has ended.
     * @param readBefore what was expected of it
     * @param input what the backend reports to have read
     */
    learn(
      backend: string,
      { model, characters }: RoutedRequest,
      readBefore: number,
      { tokens, cached }: ReportedInput,
    ): void {
      if (characters > 0) sizes.learn(model, characters / tokens);
      const life = lives.find(backend);
      if (life !== undefined) life.kept = keptAfter(life.kept, readBefore / characters, cached / tokens);
    },
    /** What becomes of the conversation's cache if the request goes to this backend; undefined: it is not known. */
    lastTurn({ keyId, conversation: { trace }, characters }: RoutedRequest, backend: string): LastTurn | undefined {
      const found = trace && traces.get(keyId, trace.thread);
      const before = found === undefined ? undefined : lives.of(found);
      if (trace === undefined || found === undefined || before === undefined) return undefined;
      return compare(trace, found, { characters, isElsewhere: before.backend !== backend });
    },
    /** This backend has read the request. */
    remember(
      backend: string,
      { keyId, conversation: { name, agent, prefix, trace }, characters }: RoutedRequest,
    ): void {
      const life = lives.open(backend);
      if (trace !== undefined) traces.set(keyId, trace.thread, packTrace(trace, life.number));
      const own = agent ?? name;
      if (own !== undefined) {
        const kept = Math.min(characters, maxCharacters);
        memory.set(keyId, own, kept * maxLives + life.number);
        life.held += kept;
      }
      if (name !== undefined && name !== own) memory.set(keyId, name, life.number);
      if (prefix !== undefined) memory.set(everyone, prefixAt(prefix, life), 1);
    },
    /** It was out, or has restarted: its cache is empty. */
    forget: lives.end,
  };
}

/** From when a backend has nothing cached until it was out. */
interface Life {
  backend: string;
  /** Below `maxLives`: entries of a memory name it by this. */
  number: number;
  /** The sizes of the conversations that were there last. */
  held: number;
  /** The part of what it has read before that it still had cached, of late; undefined until it reports any. */
  kept: number | undefined;
}

function createLives() {
  /** Undefined once it has ended. */
  const byNumber: (Life | undefined)[] = [];
  const current = new Map<string, Life>();
  let begun = 0;

  return {
    find: (backend: string) => current.get(backend),
    /** @param value of a memory */
    of: (value: number) => byNumber[value % maxLives],
    open(backend: string): Life {
      const known = current.get(backend);
      if (known !== undefined) return known;
      const life: Life = { backend, number: begun++ % maxLives, held: 0, kept: undefined };
      current.set(backend, life);
      byNumber[life.number] = life;
      return life;
    },
    end(backend: string): void {
      const life = current.get(backend);
      current.delete(backend);
      if (life !== undefined) byNumber[life.number] = undefined;
    },
    /** @returns how full its cache is, as far as one can tell: the part of what the fullest has */
    fullness({ held }: Life): number {
      let most = 1;
      for (const life of current.values()) most = Math.max(most, life.held);
      return held / most;
    },
  };
}

/** How much one response counts in what a backend is known to keep: 0.01 serves as much, 0.1 less. */
const learningRate = 0.03;

/** A smaller part of a request says little of what is kept. */
const leastToLearnFrom = 0.05;

/** @param known the part of the request that was read before; NaN without a body. @param cached the part that was cached */
function keptAfter(kept: number | undefined, known: number, cached: number): number | undefined {
  // Nothing cached and nothing reported look the same.
  if (kept === undefined && cached === 0) return undefined;
  if (!(known > leastToLearnFrom)) return kept ?? 1;
  return (kept ?? 1) + learningRate * (Math.min(1, cached / known) - (kept ?? 1));
}

/** How many characters a token has, until so many reports of a model tell; the mean is that of so many of late. */
const [usualSize, leastReports, lateReports] = [3, 20, 200];
/** Beyond these it is no text: an image is a few tokens for a megabyte. */
const [leastSize, largestSize] = [0.5, 6];
/** Clients may make names up, where backends take any. */
const [maxModels, maxNameLength] = [1000, 200];

function createTokenSizes() {
  const byModel = new Map<string | undefined, { reports: number; mean: number }>();
  return {
    of(model: string | undefined): number {
      const found = byModel.get(model);
      return found !== undefined && found.reports >= leastReports ? found.mean : usualSize;
    },
    learn(model: string | undefined, size: number): void {
      if (model !== undefined && model.length > maxNameLength) return;
      const found = byModel.get(model) ?? { reports: 0, mean: 0 };
      if (found.reports === 0 && byModel.size >= maxModels) byModel.clear();
      if (found.reports === 0) byModel.set(model, found);
      found.reports = Math.min(found.reports + 1, lateReports);
      found.mean += (Math.min(largestSize, Math.max(leastSize, size)) - found.mean) / found.reports;
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
