import { Engine, type Job, type Turn } from "./engine.ts";
import type { Policy } from "./policies.ts";
import { createRandom, exponential, Timeline } from "./timeline.ts";

/** Agents in front of engines. */
export interface Scenario {
  sessions: number;
  minutes: number;
  /** The mean time between the end of a turn and the next, in seconds. */
  thinkSeconds: number;
  /** How many programs the agents are, each with instructions of its own. */
  programs: number;
  cacheTokens: number;
  tokensPerSecond: number;
  /** The speed of each engine, as a share. */
  speeds: readonly number[];
  /** The first engine is away from one second to another. */
  away: readonly [from: number, to: number] | undefined;
  /** When the first engine loses its cache, which nobody sees. */
  forgets: number | undefined;
  /** The share of responses that are not streamed. */
  whole: number;
  /** How many equal requests come at once, each minute. */
  burst: number;
  /** In the language of a session. */
  charactersPerToken: (session: number) => number;
}

export interface Result {
  served: number;
  /** The share of input that came from a cache. */
  cached: number;
  /** Seconds to the first token. */
  p95: number;
}

export const agents: Scenario = {
  sessions: 80,
  minutes: 30,
  thinkSeconds: 5,
  programs: 4,
  cacheTokens: 1_200_000,
  tokensPerSecond: 8000,
  speeds: [1, 1, 1, 1],
  away: undefined,
  forgets: undefined,
  whole: 0,
  burst: 0,
  charactersPerToken: () => 4,
};

/** A conversation is compacted, or another begins. */
const maxTokens = 120_000;

type CreatePolicy = (engines: readonly Engine[], timeline: Timeline) => Policy;

/** The same turns for the same seed, whatever the policy does with them. */
export function simulate(scenario: Scenario, seed: number, createPolicy: CreatePolicy): Result {
  const timeline = new Timeline();
  const engines = scenario.speeds.map(
    (speed) =>
      new Engine(
        {
          tokensPerSecond: scenario.tokensPerSecond * speed,
          cacheTokens: scenario.cacheTokens,
          outputPerSecond: 60 * speed,
        },
        timeline,
      ),
  );
  const policy = createPolicy(engines, timeline);
  const result = { served: 0, input: 0, cached: 0 };
  const waits: number[] = [];

  function send(turn: Turn, onEnd: () => void): void {
    const there = engines.flatMap(({ isAway }, number) => (isAway ? [] : [number]));
    const number = policy.choose(turn, there);
    let reported: number | undefined;
    const job: Job = {
      ...turn,
      state: "waiting",
      readAt: 0,
      onFirstToken(cached) {
        waits.push(timeline.now - turn.arrivedAt);
        result.input += turn.promptTokens;
        result.cached += cached;
        reported = cached;
        if (!turn.isWhole) policy.onFirstToken?.(turn, number);
      },
      onEnd() {
        result.served += 1;
        policy.onEnd?.(turn, number, reported);
        onEnd();
      },
    };
    sent.set(job, { turn, onEnd });
    engines[number]?.take(job);
  }
  const sent = new WeakMap<Job, { turn: Turn; onEnd: () => void }>();

  for (let session = 0; session < scenario.sessions; session++)
    startSession(scenario, { seed, session, timeline, send });
  for (let minute = 1; minute < scenario.minutes; minute++)
    startBurst(scenario, { seed, session: minute, timeline, send });
  if (scenario.away !== undefined) {
    const [from, to] = scenario.away;
    timeline.at(from, () => {
      const lost = engines[0]?.goAway() ?? [];
      policy.onAway?.(0);
      for (const job of lost) {
        const { turn, onEnd } = sent.get(job) ?? {};
        if (turn === undefined || onEnd === undefined) continue;
        policy.onEnd?.(turn, 0);
        send({ ...turn }, onEnd);
      }
    });
    timeline.at(to, () => {
      for (const engine of engines) engine.isAway = false;
    });
  }
  if (scenario.forgets !== undefined) timeline.at(scenario.forgets, () => engines[0]?.forget());
  timeline.run(scenario.minutes * 60);
  const p95 = waits.toSorted((a, b) => a - b)[Math.floor(waits.length * 0.95)] ?? 0;
  return { served: result.served, cached: result.cached / result.input, p95 };
}

export interface SessionDeps {
  seed: number;
  session: number;
  timeline: Pick<Timeline, "now" | "at">;
  send: (turn: Turn, onEnd: () => void) => void;
}

/** One after the other, conversations that grow by what tools and the model say. */
export function startSession(scenario: Scenario, { seed, session, timeline, send }: SessionDeps): void {
  const random = createRandom(seed * 7919 + session);
  const program = session % scenario.programs;
  // The same for all sessions of a program.
  const sharedTokens = 9000 + Math.floor(createRandom(seed * 104_729 + program)() * 9000);
  const perToken = scenario.charactersPerToken(session);
  let conversation = session * 1_000_003;

  function take(contextTokens: number): void {
    const promptTokens = contextTokens + 200 + Math.floor(exponential(random, 700));
    const outputTokens = 50 + Math.floor(exponential(random, 250));
    const isWhole = random() < scenario.whole;
    const sizes = { sharedTokens, promptTokens, outputTokens, characters: promptTokens * perToken };
    const turn = { session, conversation, program, ...sizes, isWhole, arrivedAt: timeline.now };
    send(turn, () => think(promptTokens + outputTokens));
  }

  function think(contextTokens: number): void {
    const isOver = contextTokens > maxTokens || random() < 1 / 60;
    if (isOver) conversation += 1;
    const isLong = random() < 0.25;
    const seconds = isOver ? 30 : isLong ? scenario.thinkSeconds * 3 : scenario.thinkSeconds / 3;
    timeline.at(timeline.now + exponential(random, seconds), () => take(isOver ? sharedTokens : contextTokens));
  }

  timeline.at(random() * 5, () => take(sharedTokens + Math.floor(exponential(random, 20_000))));
}

/** Equal requests of one program that nobody has read yet, as of a batch or of a session's helpers. */
function startBurst(scenario: Scenario, { seed, session: minute, timeline, send }: SessionDeps): void {
  const random = createRandom(seed * 15_485_863 + minute);
  timeline.at(60 * minute, () => {
    for (let count = 0; count < scenario.burst; count++) {
      const number = -minute;
      const sizes = { sharedTokens: 10_000, promptTokens: 12_500, characters: 12_500 * scenario.charactersPerToken(0) };
      const outputTokens = 50 + Math.floor(exponential(random, 250));
      const from = { session: number, conversation: number, program: number };
      send({ ...from, ...sizes, outputTokens, isWhole: false, arrivedAt: timeline.now }, () => {});
    }
  });
}
