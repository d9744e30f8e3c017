import { wait } from "../time/wait.ts";
import type { ClientBehaviour, ClientTurn } from "./client-behaviour.ts";

export interface SimulatedClient {
  /** Origin of `/v1`. */
  url: string;
  key: string;
  behaviour: ClientBehaviour;
  /** Stops the client, also in the middle of a response. */
  signal: AbortSignal;
}

/** Sends requests and reads the responses until the signal aborts. */
export async function runSimulatedClient(options: SimulatedClient): Promise<void> {
  await Promise.all(Array.from({ length: options.behaviour.parallel }, (_, index) => runConversation(options, index)));
}

async function runConversation({ url, key, behaviour, signal }: SimulatedClient, index: number): Promise<void> {
  const [from, to] = behaviour.pauseMs;
  for (let turn = index; !signal.aborted; turn += behaviour.parallel) {
    await sendTurn(url, key, behaviour.nextTurn(turn), signal);
    await wait(from + Math.random() * (to - from), signal);
  }
}

/** Ignores failures: the next turn follows after the usual pause. */
async function sendTurn(
  url: string,
  key: string,
  { path, body, leavesAfterMs }: ClientTurn,
  stop: AbortSignal,
): Promise<void> {
  const signal = leavesAfterMs === undefined ? stop : AbortSignal.any([stop, AbortSignal.timeout(leavesAfterMs)]);
  try {
    const response = await fetch(url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
      // The request goes to this process itself, never through a proxy.
      proxy: false,
    });
    await response.body?.pipeTo(new WritableStream());
  } catch {
    // The client left, or the demo is ending.
  }
}
