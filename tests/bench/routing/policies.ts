import { createAffinity, type RoutedRequest } from "../../../src/routing/affinity.ts";
import { workBefore } from "../../../src/routing/choice.ts";
import type { Engine, Job, Turn } from "./engine.ts";
import type { Timeline } from "./timeline.ts";

/** Chooses an engine for each turn, by its number. */
export interface Policy {
  /** @param there the engines that are not away; at least one */
  choose(turn: Turn, there: readonly number[]): number;
  /** A prompt was read; not seen of whole responses. */
  onFirstToken?(turn: Turn, engine: number): void;
  /** @param cached tokens of its input, as the engine reports them; undefined if it did not end well */
  onEnd?(turn: Turn, engine: number, cached?: number): void;
  onAway?(engine: number): void;
}

const hash = (text: string): number => Bun.hash.xxHash32(text);
const rank = (turn: Turn, engine: number): number => hash(`${turn.conversation} ${engine}`);

/** @returns the number of which `cost` is least */
function leastOf(engines: readonly number[], cost: (engine: number) => number): number {
  let [best = 0] = engines;
  let least = Infinity;
  for (const engine of engines) {
    const one = cost(engine);
    if (one < least) [best, least] = [engine, one];
  }
  return best;
}

export const policies = {
  "round robin": (): Policy => {
    let turns = 0;
    return { choose: (_, there) => there[turns++ % there.length] ?? 0 };
  },
  "fewest in flight": (): Policy => {
    const inFlight: number[] = [];
    const add = (engine: number, count: number): void => void (inFlight[engine] = (inFlight[engine] ?? 0) + count);
    return {
      choose(_, there) {
        const engine = leastOf(there, (one) => inFlight[one] ?? 0);
        add(engine, 1);
        return engine;
      },
      onEnd: (_, engine) => add(engine, -1),
    };
  },
  "hash of the conversation": (): Policy => ({
    choose: (turn, there) => leastOf(there, (engine) => -rank(turn, engine)),
  }),
  "hash, load at most 1.25": (): Policy => {
    const inFlight: number[] = [];
    const add = (engine: number, count: number): void => void (inFlight[engine] = (inFlight[engine] ?? 0) + count);
    return {
      choose(turn, there) {
        const all = there.reduce((sum, engine) => sum + (inFlight[engine] ?? 0), 1);
        const most = Math.ceil((1.25 * all) / there.length);
        const free = there.filter((engine) => (inFlight[engine] ?? 0) < most);
        const engine = leastOf(free.length > 0 ? free : there, (one) => -rank(turn, one));
        add(engine, 1);
        return engine;
      },
      onEnd: (_, engine) => add(engine, -1),
    };
  },
  "stays, up to 60,000 tokens": (): Policy => leastWork(60_000),
  "least work (Tollgate)": (): Policy => leastWork(),
} as const;

type Load = Record<"inFlight" | "waitingTokens", number>;

/**
 * What the server does, with its own code.
 * @param stay instead, it stays where it was until that has so many tokens more to do than the least, and leaving costs nothing
 */
function leastWork(stay?: number): Policy {
  const affinity = createAffinity({ entries: 100_000, perOwner: 25_000 });
  const loads = new Map<number, Load>();
  const waiting = new Map<Turn, number>();
  const readBefore = new Map<Turn, number>();
  const loadOf = (engine: number): Load => loads.get(engine) ?? { waitingTokens: 0, inFlight: 0 };
  const add = (engine: number, tokens: number, requests: number): void => {
    const { waitingTokens, inFlight } = loadOf(engine);
    loads.set(engine, { waitingTokens: waitingTokens + tokens, inFlight: inFlight + requests });
  };
  const requestOf = ({ session, conversation, program, characters }: Turn): RoutedRequest => ({
    keyId: session,
    model: "m",
    conversation: { name: conversation, prefix: program },
    characters,
  });
  const begin = (turn: Turn, engine: number): void => {
    affinity.remember(String(engine), requestOf(turn));
    add(engine, -(waiting.get(turn) ?? 0), 0);
    waiting.delete(turn);
  };
  return {
    choose(turn, there) {
      const request = requestOf(turn);
      const ranked = there.toSorted((a, b) => rank(turn, b) - rank(turn, a));
      const workAt = affinity.expect(request);
      const costAt = (one: number, work: Parameters<typeof workBefore>[1]): number => workBefore(loadOf(one), work);
      const toDo = (one: number): number => costAt(one, { tokens: 0, leaving: 0 });
      const last = ranked.find((one) => workAt(String(one)).readBefore > 0);
      const stays = stay !== undefined && last !== undefined && toDo(last) - Math.min(...there.map(toDo)) <= stay;
      const least = leastOf(ranked, (one) => {
        const { tokens, leaving } = workAt(String(one));
        return costAt(one, { tokens, leaving: stay === undefined ? leaving : 0 });
      });
      const engine = stays ? last : least;
      const work = workAt(String(engine));
      waiting.set(turn, work.tokens);
      readBefore.set(turn, work.readBefore);
      add(engine, work.tokens, 1);
      return engine;
    },
    onFirstToken: begin,
    onEnd(turn, engine, cached) {
      const before = readBefore.get(turn) ?? 0;
      readBefore.delete(turn);
      if (cached !== undefined) {
        affinity.learn(String(engine), requestOf(turn), before, { tokens: turn.promptTokens, cached });
        if (waiting.has(turn)) begin(turn, engine);
      }
      add(engine, -(waiting.get(turn) ?? 0), -1);
      waiting.delete(turn);
    },
    onAway: (engine) => affinity.forget(String(engine)),
  };
}

/** Knows what every engine has cached and has to do, and takes the one that is done first. */
export function oracle(engines: readonly Engine[], timeline: Timeline): Policy {
  const secondsFor = (engine: Engine, job: Turn): number =>
    (job.promptTokens - engine.cachedOf(job)) / engine.options.tokensPerSecond;
  const secondsOf = (engine: Engine, job: Job): number =>
    job.state === "reading" ? job.readAt - timeline.now : job.state === "waiting" ? secondsFor(engine, job) : 0;
  return {
    choose: (turn, there) =>
      leastOf(there, (number) => {
        const engine = engines[number];
        if (engine === undefined) return Infinity;
        let seconds = secondsFor(engine, turn) + engine.writing * 1e-4;
        for (const job of engine.jobs) seconds += secondsOf(engine, job);
        return seconds;
      }),
  };
}
