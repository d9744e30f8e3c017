import { wait } from "../time/wait.ts";
import type { ClientBehaviour, ClientTurn } from "./client-behaviour.ts";

export interface Talk {
  /** Origin of `/v1`. */
  url: string;
  key: string;
  habit: ClientBehaviour;
  /** Ends it, also in the middle of an answer. */
  signal: AbortSignal;
}

/** Asks and reads until the signal aborts. */
export async function talk(options: Talk): Promise<void> {
  await Promise.all(Array.from({ length: options.habit.parallel }, (_, index) => converse(options, index)));
}

async function converse({ url, key, habit, signal }: Talk, index: number): Promise<void> {
  const [from, to] = habit.pauseMs;
  for (let turn = index; !signal.aborted; turn += habit.parallel) {
    await ask(url, key, habit.turn(turn), signal);
    await wait(from + Math.random() * (to - from), signal);
  }
}

/** A client that fails tries something else a little later, as people do. */
async function ask(
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
      // The way to this very process never leads through one.
      proxy: false,
    });
    await response.body?.pipeTo(new WritableStream());
  } catch {
    // It left, or the demo ends.
  }
}
