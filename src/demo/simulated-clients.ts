import type { WallClock } from "../time/clock.ts";
import { minuteOf, msPerMinute } from "../time/seoul.ts";
import { speedOf } from "./backend.ts";
import type { ClientTurn } from "./client-behaviour.ts";
import { type Persona, usageOf } from "./personas.ts";
import { type PlannedRequest, plannedRequests } from "./traffic.ts";

export interface SimulatedClient {
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
  const { traffic, nextTurn } = persona;
  if (nextTurn === undefined) return;
  const running = new Set<Promise<void>>();
  const waitUntil = (time: number): Promise<void> => wait(Math.max(0, time - clock()), signal);
  let turn = 0;
  // After the machine has slept, the minutes that it slept through are skipped.
  for (let minute = minuteOf(since); !signal.aborted; minute = Math.max(minute + 1, minuteOf(clock()))) {
    for (const request of plannedRequests(traffic, minute, seed)) {
      if (request.startsAt < since) continue;
      await waitUntil(request.startsAt);
      if (signal.aborted) break;
      const sending: Promise<void> = send(client, nextTurn(turn++, request.outputTokens), request).finally(() =>
        running.delete(sending),
      );
      running.add(sending);
    }
    await waitUntil((minute + 1) * msPerMinute);
  }
  await Promise.all(running);
}

/** A request that fails is sent again, as by most clients. */
async function send(client: SimulatedClient, turn: ClientTurn, planned: PlannedRequest): Promise<void> {
  const { startsAt } = planned;
  const simulated = new URLSearchParams();
  const values = { ...usageOf(client.persona, planned), ...speedOf(planned, client.load(minuteOf(startsAt))) };
  for (const [name, value] of Object.entries(values)) if (value !== undefined) simulated.set(name, `${value}`);
  const fault = client.nextFault();
  if (fault !== undefined) await post(client, turn, `${simulated}&fault=${fault}`);
  await post(client, turn, `${simulated}`);
}

async function post(
  client: SimulatedClient,
  { path, body, leavesAfterMs }: ClientTurn,
  simulated: string,
): Promise<void> {
  const { url, key, persona, signal: stop } = client;
  const signal = leavesAfterMs === undefined ? stop : AbortSignal.any([stop, AbortSignal.timeout(leavesAfterMs)]);
  try {
    const response = await fetch(url + path, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "user-agent": persona.program,
        "x-simulate": simulated,
      },
      body: JSON.stringify(body),
      signal,
      // The request goes to this process itself, never through a proxy.
      proxy: false,
    });
    await response.body?.pipeTo(new WritableStream());
  } catch {
    // The client left, the backend broke the response off, or the demo is ending.
  }
}
