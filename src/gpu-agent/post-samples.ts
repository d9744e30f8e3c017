import type { WallClock } from "../time/clock.ts";
import type { Backoff } from "../time/backoff.ts";
import type { SampleSet } from "./gpu-entry.ts";
import type { Latest } from "./latest.ts";
import type { PostResult, PushTarget } from "./post-result.ts";
import { answerOf, failureOf } from "./post-result.ts";
import type { LogOnChange } from "./log-on-change.ts";
import { wait } from "../time/wait.ts";

/** Holds the connection, the server's look-up and its write; a sample is stale long before. */
const requestDeadlineMs = 10_000;

/** Posts one sample set. Never rejects: what went wrong is in the answer. */
export async function postSamples(server: PushTarget, samples: SampleSet, signal: AbortSignal): Promise<PostResult> {
  const deadline = AbortSignal.timeout(server.deadlineMs ?? requestDeadlineMs);
  try {
    const response = await fetch(server.url, {
      method: "POST",
      headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json" },
      body: JSON.stringify({ gpus: samples }),
      // A key is for the host that the operator named, not for one that it points to.
      redirect: "manual",
      signal: AbortSignal.any([deadline, signal]),
    });
    return answerOf(server.url, response.status, response.headers, await response.text());
  } catch (error) {
    return failureOf(server.url, deadline.aborted ? "timeout" : error);
  }
}

export interface TimedSamples {
  samples: SampleSet;
  /** Milliseconds since the epoch. */
  readAt: number;
}

export interface PostLatestOptions {
  server: PushTarget;
  newest: Latest<TimedSamples>;
  /** The server dates a sample by its arrival, so one older than this would be a lie. */
  staleMs: number;
  backoff: Backoff;
  /** After a refused key: a person has to act, so there is no hurry. */
  refusedWaitMs: number;
  clock: WallClock;
  say: LogOnChange;
  signal: AbortSignal;
}

/** Posts the newest samples, one request at a time, until the signal aborts. Samples that came in between are dropped. */
export async function postLatest({
  newest,
  backoff,
  clock,
  say,
  signal,
  ...options
}: PostLatestOptions): Promise<void> {
  for (;;) {
    const timed = await newest.take(signal);
    if (signal.aborted) return;
    if (timed === undefined || clock() - timed.readAt > options.staleMs) continue;
    const answer = await postSamples(options.server, timed.samples, signal);
    if (signal.aborted) return;
    if (answer.kind === "accepted") {
      backoff.reset();
      say("info", answer.words);
    } else {
      say("warn", `${answer.words}; trying again until it works`);
      await wait(answer.kind === "key refused" ? options.refusedWaitMs : backoff.next(), signal);
    }
  }
}
