import { minuteOf, msPerMinute } from "../time/seoul.ts";
import { halfDayMinutes, slownessAt, speedOf } from "./backend.ts";
import { type Persona, usageOf } from "./personas.ts";
import { isActiveAt, noise, type PlannedRequest, plannedRequests } from "./traffic.ts";
import type { Outcome, RequestRecord } from "../domain/requests.ts";
import type { Usage } from "../domain/usage.ts";

export interface KeyPersona {
  keyId: number;
  persona: Persona;
}

/** A request of the past. It counts if it has usage. */
export interface PastRequest {
  record: RequestRecord;
  endedAt: number;
  usage: Usage | undefined;
}

export interface PastRequestsOptions {
  keys: readonly KeyPersona[];
  /** Epoch milliseconds. */
  from: number;
  to: number;
  loadIn: (minute: number) => number;
  /** Host and port. */
  backend: string;
}

/** The simulated clients run on the same machine. */
const clientAddress = "127.0.0.1";

/**
 * The requests that the traffic had in a time, in the order of their ends. Those that failed came on top: their clients
 * tried again.
 */
export function pastRequests(options: PastRequestsOptions): PastRequest[] {
  const { keys, from, to, loadIn } = options;
  const requests: PastRequest[] = [];
  for (let minute = minuteOf(from); minute * msPerMinute < to; minute++) {
    const load = loadIn(minute);
    for (const [seed, key] of keys.entries()) {
      const planned = isActiveAt(key.persona.traffic, to / msPerMinute - minute)
        ? plannedRequests(key.persona.traffic, minute, seed)
        : [];
      for (const one of planned) {
        if (one.startsAt < from || one.startsAt >= to) continue;
        requests.push(...failuresOf(one, key, options), servedRequest(one, key, load, options));
      }
    }
    requests.push(...strangersIn(minute));
  }
  const ended = requests.filter(({ endedAt }) => endedAt < to).toSorted((a, b) => a.endedAt - b.endedAt);
  for (const [index, { record }] of ended.entries()) record.requestId = idOf(index);
  return ended;
}

function servedRequest(
  planned: PlannedRequest,
  { keyId, persona }: KeyPersona,
  load: number,
  { backend }: PastRequestsOptions,
): PastRequest {
  const { outputTokens } = planned;
  const speed = speedOf(planned, load);
  const wholeMs = speed.firstByteMs + (outputTokens / speed.tokensPerSecond) * 1000;
  const leaves = persona.isImpatient === true && chanceOf(planned, 20) < 1 / 8;
  const durationMs = leaves ? Math.min(wholeMs, 700 + 1800 * chanceOf(planned, 21)) : wholeMs;
  const usage = usageOf(persona, planned);
  const upstreamMs = persona.streamed ? speed.firstByteMs : wholeMs;
  return pastRequest(planned, { keyId, persona, backend }, durationMs, usage, {
    status: 200,
    outcome: durationMs < wholeMs ? "client_left" : "completed",
    code: undefined,
    cause: undefined,
    upstreamMs,
    firstByteMs: upstreamMs,
    receivedBytes: persona.streamed ? outputTokens * 240 : 600 + outputTokens * 5,
  });
}

/** The share of requests that fail at first; in a slow phase one in twelve. */
const failingShare = 0.0012;
const failingShareWhileSlow = 0.08;

const failures: readonly (Pick<RequestRecord, "status" | "outcome" | "code" | "cause"> & { afterMs: number })[] = [
  { status: 503, outcome: "completed", code: undefined, cause: undefined, afterMs: 40 },
  { status: 429, outcome: "completed", code: undefined, cause: undefined, afterMs: 25 },
  { status: 502, outcome: "upstream_failed", code: "upstream_unreachable", cause: "ECONNRESET", afterMs: 900 },
  { status: 504, outcome: "timed_out", code: "upstream_timeout", cause: "first_byte_timeout", afterMs: 1_200_000 },
];

function failuresOf(planned: PlannedRequest, key: KeyPersona, { backend }: PastRequestsOptions): PastRequest[] {
  const share = slownessAt(minuteOf(planned.startsAt)) > 1 ? failingShareWhileSlow : failingShare;
  if (chanceOf(planned, 10) >= share) return [];
  const failure = failures[Math.floor(chanceOf(planned, 11) * failures.length)];
  if (failure === undefined) return [];
  const { afterMs, ...ending } = failure;
  const durationMs = afterMs * (0.7 + 0.3 * chanceOf(planned, 12));
  const isResponse = ending.outcome === "completed";
  return [
    pastRequest(planned, { ...key, backend }, durationMs, undefined, {
      ...ending,
      upstreamMs: isResponse ? durationMs : undefined,
      firstByteMs: isResponse ? durationMs : undefined,
      receivedBytes: isResponse ? 120 : undefined,
    }),
  ];
}

function pastRequest(
  planned: PlannedRequest,
  { keyId, persona, backend }: KeyPersona & { backend: string },
  durationMs: number,
  usage: Usage | undefined,
  ending: Pick<RequestRecord, "status" | "outcome" | "code" | "cause" | "upstreamMs" | "firstByteMs" | "receivedBytes">,
): PastRequest {
  const record: RequestRecord = {
    requestId: "",
    clientAddress,
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
    durationMs: Math.round(durationMs),
    usage,
    ...ending,
  };
  return { record, endedAt: Math.round(planned.startsAt + durationMs), usage };
}

/** Somebody who tries keys: some dozen requests within a minute of each half of a day. */
function strangersIn(minute: number): PastRequest[] {
  if (minute % halfDayMinutes !== Math.floor(noise(Math.floor(minute / halfDayMinutes)) * halfDayMinutes)) return [];
  const count = 5 + Math.floor(20 * noise(minute * 53 + 8));
  return Array.from({ length: count }, (_, index) => {
    const startsAt = Math.floor(minute * msPerMinute + (index / count) * msPerMinute);
    const outcome: Outcome = "refused";
    return {
      record: {
        requestId: "",
        clientAddress,
        clientProgram: "curl/8.14",
        method: "GET",
        path: "/v1/models",
        keyId: undefined,
        modelAsked: undefined,
        modelSent: undefined,
        model: undefined,
        streamed: false,
        status: 401,
        outcome,
        code: "invalid_api_key",
        cause: undefined,
        receivedBytes: undefined,
        upstreamMs: undefined,
        firstByteMs: undefined,
        durationMs: 1,
        usage: undefined,
      },
      endedAt: startsAt + 1,
      usage: undefined,
    };
  });
}

const chanceOf = ({ startsAt, inputTokens }: PlannedRequest, salt: number): number =>
  noise(startsAt * 31 + inputTokens * 7 + salt);

/** In the form of the ids that the proxy makes. */
function idOf(index: number): string {
  const part = (n: number): string =>
    Math.floor(noise(index * 4 + n) * 2 ** 32)
      .toString(16)
      .padStart(8, "0");
  const text = part(0) + part(1) + part(2) + part(3);
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-4${text.slice(13, 16)}-8${text.slice(17, 20)}-${text.slice(20)}`;
}
