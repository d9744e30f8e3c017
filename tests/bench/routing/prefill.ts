import { isChoice } from "../../../src/domain/admissions.ts";
import { createDispatch } from "../../../src/routing/dispatch.ts";
import { backendOf, fileCatalog, replaceableCatalog } from "../../support/catalog.ts";
import { silentLog } from "../../support/local-places.ts";
import { createRandom, exponential, Timeline } from "./timeline.ts";

// An engine that works in steps, as vLLM with chunked prefill does: each reads one chunk of prompts, first come first served,
// and writes one token of each answer. In front of it the server's own dispatch.

export interface PrefillScenario {
  /** How many cold prompts come at once, each minute. */
  giants: number;
  /** Undefined: off. */
  maxPrefillTokens: number | undefined;
}

/** Times are seconds. */
export interface PrefillResult {
  /** Between two tokens of a running answer, while giants are there. */
  tokenP99: number;
  /** To the first token of a chat of 300 tokens that arrives while giants are there. */
  chatP95: number;
  /** How many turns of 100,000 tokens with a warm cache waited at the gate. */
  warmHeld: number;
  giantsServed: number;
  served: number;
}

const [giantTokens, warmTokens, chatTokens] = [60_000, 100_000, 300];
const [chunk, stepSeconds, secondsPerToken] = [2048, 0.01, 1 / 8000];
const minutes = 20;

interface Job {
  conversation: number;
  tokens: number;
  output: number;
  unread: number;
  written: number;
  at: number;
  onFirst: (cached: number) => void;
  onToken: (gap: number) => void;
  onEnd: () => void;
}

function createEngine(timeline: Timeline) {
  const jobs = new Set<Job>();
  const cache = new Map<number, number>();
  let isRunning = false;

  function step(): void {
    const writing = [...jobs].filter(({ unread }) => unread === 0);
    let budget = chunk - writing.length;
    const read: Job[] = [];
    for (const job of jobs) {
      const part = Math.min(job.unread, budget);
      if (part === 0) continue;
      job.unread -= part;
      budget -= part;
      read.push(job);
    }
    const seconds = stepSeconds + (chunk - budget) * secondsPerToken;
    isRunning = jobs.size > 0;
    if (!isRunning) return;
    timeline.at(timeline.now + seconds, () => {
      for (const job of [...read.filter(({ unread }) => unread === 0), ...writing]) write(job);
      step();
    });
  }

  function write(job: Job): void {
    if (job.written === 0) {
      job.onFirst(job.tokens - readOf(job));
      cache.set(job.conversation, job.tokens);
    } else job.onToken(timeline.now - job.at);
    job.at = timeline.now;
    job.written += 1;
    if (job.written < job.output) return;
    jobs.delete(job);
    cache.set(job.conversation, job.tokens + job.output);
    job.onEnd();
  }

  const readOf = ({ conversation, tokens }: Pick<Job, "conversation" | "tokens">): number =>
    Math.max(1, tokens - (cache.get(conversation) ?? 0));

  return {
    take(job: Omit<Job, "unread" | "written" | "at">): void {
      jobs.add({ ...job, unread: readOf(job), written: 0, at: timeline.now });
      if (!isRunning) step();
    },
  };
}

/** The same requests for the same seed. */
export function simulatePrefill({ giants, maxPrefillTokens }: PrefillScenario, seed: number): PrefillResult {
  const timeline = new Timeline();
  const engine = createEngine(timeline);
  const milliseconds = (): number => timeline.now * 1000;
  using dispatch = createDispatch({
    catalog: replaceableCatalog(fileCatalog([backendOf("a", { maxPrefillTokens })], [])),
    maxWaiting: 1000,
    backendWaitMs: 0,
    probe: async () => ({ ok: true }),
    received: async () => [],
    clock: milliseconds,
    monotonic: milliseconds,
    log: silentLog,
    onChanged() {},
  });
  const random = createRandom(seed);
  const [gaps, chats]: [number[], number[]] = [[], []];
  const result = { warmHeld: 0, giantsServed: 0, served: 0 };
  let reading = 0;

  function send(
    kind: "giant" | "warm" | "cold" | "chat",
    conversation: number,
    tokens: number,
    output: number,
    then = () => {},
  ) {
    const [arrivedAt, isBeside] = [timeline.now, reading > 0];
    let cached = 0;
    const name = { name: conversation, prefix: undefined };
    const request = { keyId: conversation, waits: true, model: "m", candidates: ["a"], tried: [] };
    const onGranted = (): void =>
      engine.take({
        conversation,
        tokens,
        output,
        onFirst(found) {
          cached = found;
          place.report({ kind: "responded" });
          place.report({ kind: "begun" });
          reading -= Number(kind === "giant");
          if (kind === "chat" && isBeside) chats.push(timeline.now - arrivedAt);
        },
        onToken: (gap) => void (reading > 0 && gaps.push(gap)),
        onEnd() {
          place.leave({ tokens, cached });
          result.served += 1;
          result.giantsServed += Number(kind === "giant");
          then();
        },
      });
    reading += Number(kind === "giant");
    const listener = { onGranted, onDisplaced() {} };
    const place = dispatch.enter({ ...request, characters: tokens * 3, conversation: name }, listener);
    const { entry } = place;
    if (entry instanceof Promise) return;
    if (isChoice(entry)) onGranted();
    else result.warmHeld += Number(kind === "warm");
  }

  let last = 10_000;
  /** Turns of a long conversation. */
  const turn = (conversation: number, tokens: number): void =>
    send("warm", conversation, tokens, 200, () => {
      timeline.at(timeline.now + exponential(random, 4), () => turn(conversation, tokens + 200));
    });
  for (let agent = 0; agent < 4; agent++) {
    timeline.at(20 * agent, () => send("cold", agent, warmTokens, 200, () => turn(agent, warmTokens + 400)));
  }
  function chat(): void {
    send("chat", ++last, chatTokens, 150);
    timeline.at(timeline.now + exponential(random, 0.7), chat);
  }
  timeline.at(90, chat);
  for (let minute = 2; minute < minutes; minute++) {
    timeline.at(60 * minute, () => {
      for (let one = 0; one < giants; one++) send("giant", ++last, giantTokens, 100);
    });
  }
  timeline.run(60 * minutes);
  const percentile = (values: number[], share: number): number =>
    values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0;
  return { ...result, tokenP99: percentile(gaps, 0.99), chatP95: percentile(chats, 0.95) };
}
