import type { WallClock } from "../time/clock.ts";
import { minuteOf, msPerMinute } from "../time/seoul.ts";
import { speedOf } from "./backend.ts";
import { bodyOf, leavesAfter, type Persona, usageOf } from "./personas.ts";
import { isActiveAt, noise, type PlannedRequest, plannedRequests } from "./traffic.ts";

interface SimulatedClient {
  /** Origin of `/v1`. */
  url: string;
  key: string;
  persona: Persona;
  /** The one that the past is made with. */
  seed: number;
  /** When the past ends, epoch milliseconds. */
  since: number;
  clock: WallClock;
  wait: (ms: number, signal: AbortSignal) => Promise<void>;
  /** How busy the backend is in a minute, 0 to 1. */
  load: (minute: number) => number;
  /** The fault that the backend simulates for the next request. */
  nextFault: () => string | undefined;
  /** Stops the client, also in the middle of a response. */
  signal: AbortSignal;
}

/** Continues the past: sends the requests that the traffic has in each minute, until the signal aborts. */
export async function runSimulatedClient(client: SimulatedClient): Promise<void> {
  const { persona, seed, since, clock, wait, signal } = client;
  const { traffic } = persona;
  if (!isActiveAt(traffic, 0)) return;
  const running = new Set<Promise<void>>();
  const waitUntil = (time: number): Promise<void> => wait(Math.max(0, time - clock()), signal);
  let turn = 0;
  // After the machine has slept, the minutes that it slept through are skipped.
  for (let minute = minuteOf(since); !signal.aborted; minute = Math.max(minute + 1, minuteOf(clock()))) {
    for (const request of plannedRequests(traffic, minute, seed)) {
      if (request.startsAt < since) continue;
      await waitUntil(request.startsAt);
      if (signal.aborted) break;
      const sending: Promise<void> = send(client, turn++, request).finally(() => running.delete(sending));
      running.add(sending);
    }
    await waitUntil((minute + 1) * msPerMinute);
  }
  await Promise.all(running);
}

/** A request that fails is sent again, as by most clients. */
async function send(client: SimulatedClient, turn: number, planned: PlannedRequest): Promise<void> {
  const { persona, load, nextFault } = client;
  const simulated = new URLSearchParams();
  const values = { ...usageOf(persona, planned), ...speedOf(planned, load(minuteOf(planned.startsAt))) };
  for (const [name, value] of Object.entries(values)) if (value !== undefined) simulated.set(name, `${value}`);
  const fault = nextFault();
  const body = JSON.stringify(bodyOf(persona, turn, planned.outputTokens));
  const afterMs = leavesAfter(persona, (salt) => noise(turn * 31 + salt));
  if (fault !== undefined) await post(client, body, `${simulated}&fault=${fault}`, afterMs);
  await post(client, body, `${simulated}`, afterMs);
}

async function post(client: SimulatedClient, body: string, simulated: string, leavesAfterMs: number): Promise<void> {
  const { url, key, persona, signal: stop } = client;
  const signal = leavesAfterMs === Infinity ? stop : AbortSignal.any([stop, AbortSignal.timeout(leavesAfterMs)]);
  const headers = {
    authorization: `Bearer ${key}`,
    "content-type": "application/json",
    "user-agent": persona.program,
    "x-simulate": simulated,
  };
  try {
    // The request goes to this process itself, never through a proxy.
    const response = await fetch(url + persona.path, { method: "POST", headers, body, signal, proxy: false });
    await response.body?.pipeTo(new WritableStream());
  } catch {
    // The client left, the backend broke the response off, or the demo is ending.
  }
}

/** The first one comes soon, so that a short visit sees one. */
const firstFaultAfterMs = 2 * msPerMinute;
const faultEveryMs = 40 * msPerMinute;
/** An overloaded backend, a request without a response, and a response that breaks off. */
const faults = ["refuse", "reset", "break"];

/** @returns the fault of the next request; undefined for nearly all of them */
export function createFaults(clock: WallClock): () => string | undefined {
  let dueAt = clock() + firstFaultAfterMs;
  let faultCount = 0;
  return () => {
    if (clock() < dueAt) return undefined;
    dueAt = clock() + faultEveryMs;
    return faults[faultCount++ % faults.length];
  };
}
