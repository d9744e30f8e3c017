import type { WallClock } from "../time/clock.ts";
import { minuteOf, msPerMinute } from "../time/seoul.ts";
import type { ClientTurn, NextTurn } from "./client-behaviour.ts";
import { type PlannedRequest, plannedRequests, type Traffic } from "./traffic.ts";

export interface SimulatedClient {
  /** Origin of `/v1`. */
  url: string;
  key: string;
  traffic: Traffic;
  /** As in the history. */
  seed: number;
  nextTurn: NextTurn;
  /** When the history ends, epoch milliseconds. */
  since: number;
  clock: WallClock;
  wait: (ms: number, signal: AbortSignal) => Promise<void>;
  /** The fault that the backend simulates for the next request. */
  nextFault: () => string | undefined;
  /** Stops the client, also in the middle of a response. */
  signal: AbortSignal;
}

/** Continues the history: sends the requests that the same traffic has in each minute, until the signal aborts. */
export async function runSimulatedClient(client: SimulatedClient): Promise<void> {
  const { traffic, seed, nextTurn, since, clock, wait, signal } = client;
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

/** Ignores failures, as a client does that tries again some other time. */
async function send(
  { url, key, nextFault, signal: stop }: SimulatedClient,
  { path, body, leavesAfterMs }: ClientTurn,
  { inputTokens, outputTokens }: PlannedRequest,
): Promise<void> {
  const signal = leavesAfterMs === undefined ? stop : AbortSignal.any([stop, AbortSignal.timeout(leavesAfterMs)]);
  const script = [`usage=${inputTokens},${outputTokens}`, nextFault() ?? ""].join(";");
  try {
    const response = await fetch(url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "x-simulate": script },
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
