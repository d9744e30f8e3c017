import { randomUUID } from "node:crypto";
import { minuteOf, msPerMinute } from "../time/seoul.ts";
import { slownessAt, speedOf } from "./backend.ts";
import { leavesAfter, type Persona, usageOf } from "./personas.ts";
import { isActiveAt, noise, type PlannedRequest, plannedRequests } from "./traffic.ts";
import type { RequestRecord } from "../domain/requests.ts";

export interface KeyPersona {
  keyId: number;
  persona: Persona;
}

/** A request of the past. It counts if it has usage. */
export interface PastRequest {
  record: RequestRecord;
  endedAt: number;
}

/**
 * The requests that the traffic had in some minutes, in the order of their ends. Those that failed came on top: their
 * clients tried again.
 */
export function pastRequests(options: {
  keys: readonly KeyPersona[];
  /** Of which requests are wanted, since the epoch. */
  minutes: readonly number[];
  /** When the past ends, epoch milliseconds. */
  to: number;
  loadIn: (minute: number) => number;
  /** Host and port. */
  backend: string;
}): PastRequest[] {
  const { keys, minutes, to, loadIn, backend } = options;
  const requests = minutes.flatMap((minute) => {
    const load = loadIn(minute);
    return keys.flatMap((key, seed) => {
      const { traffic } = key.persona;
      const planned = isActiveAt(traffic, to / msPerMinute - minute) ? plannedRequests(traffic, minute, seed) : [];
      return planned.flatMap((one) => failuresOf(one, key, backend).concat(servedRequest(one, key, load, backend)));
    });
  });
  return requests.filter(({ endedAt }) => endedAt < to).toSorted((a, b) => a.endedAt - b.endedAt);
}

type Ending = Pick<RequestRecord, "status" | "outcome"> & Partial<RequestRecord>;

/** The simulated clients run on the same machine. */
const nothing = {
  clientAddress: "127.0.0.1",
  keyId: undefined,
  modelAsked: undefined,
  modelSent: undefined,
  model: undefined,
  streamed: false,
  code: undefined,
  cause: undefined,
  receivedBytes: undefined,
  upstreamMs: undefined,
  firstByteMs: undefined,
  usage: undefined,
};

function pastRequest(
  planned: PlannedRequest,
  { keyId, persona }: KeyPersona,
  backend: string,
  ending: Ending & { durationMs: number },
): PastRequest {
  const durationMs = Math.round(ending.durationMs);
  const record: RequestRecord = {
    ...nothing,
    requestId: randomUUID(),
    clientProgram: persona.program,
    method: "POST",
    path: persona.path,
    keyId,
    modelAsked: persona.asks,
    modelSent: persona.model,
    model: persona.model,
    streamed: persona.streamed,
    backend,
    changes: { kinds: persona.changes, maxTokens: undefined },
    queueMs: 0.4 + chanceOf(planned, 30),
    ...ending,
    durationMs,
  };
  return { record, endedAt: planned.startsAt + durationMs };
}

function servedRequest(planned: PlannedRequest, key: KeyPersona, load: number, backend: string): PastRequest {
  const { outputTokens } = planned;
  const { persona } = key;
  const { firstByteMs, tokensPerSecond } = speedOf(planned, load);
  const wholeMs = firstByteMs + (outputTokens / tokensPerSecond) * 1000;
  const durationMs = Math.min(
    wholeMs,
    leavesAfter(persona, (salt) => chanceOf(planned, salt)),
  );
  const upstreamMs = persona.streamed ? firstByteMs : wholeMs;
  return pastRequest(planned, key, backend, {
    status: 200,
    outcome: durationMs < wholeMs ? "client_left" : "completed",
    upstreamMs,
    firstByteMs: upstreamMs,
    durationMs,
    receivedBytes: persona.streamed ? outputTokens * 240 : 600 + outputTokens * 5,
    usage: usageOf(persona, planned),
  });
}

/** The share of requests that fail at first; in a slow phase one in twelve. */
const failingShare = 0.0012;
const failingShareWhileSlow = 0.08;

const failures: readonly (Ending & { afterMs: number })[] = [
  { status: 503, outcome: "completed", afterMs: 40 },
  { status: 429, outcome: "completed", afterMs: 25 },
  { status: 502, outcome: "upstream_failed", code: "upstream_unreachable", cause: "ECONNRESET", afterMs: 900 },
  { status: 504, outcome: "timed_out", code: "upstream_timeout", cause: "first_byte_timeout", afterMs: 1_200_000 },
];

function failuresOf(planned: PlannedRequest, key: KeyPersona, backend: string): PastRequest[] {
  const share = slownessAt(minuteOf(planned.startsAt)) > 1 ? failingShareWhileSlow : failingShare;
  const failure = failures[Math.floor(chanceOf(planned, 11) * failures.length)];
  if (failure === undefined || chanceOf(planned, 10) >= share) return [];
  const { afterMs, ...ending } = failure;
  const durationMs = afterMs * (0.7 + 0.3 * chanceOf(planned, 12));
  const response = ending.outcome === "completed" && { upstreamMs: durationMs, firstByteMs: durationMs };
  return [
    pastRequest(planned, key, backend, { ...ending, ...response, ...(response && { receivedBytes: 120 }), durationMs }),
  ];
}

const chanceOf = ({ startsAt, inputTokens }: PlannedRequest, salt: number): number =>
  noise(startsAt * 31 + inputTokens * 7 + salt);
