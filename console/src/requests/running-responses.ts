import { createSignal } from "solid-js";
import { api, responseBody } from "../client.ts";
import type { Key } from "../queries.ts";

/** A key that was switched off while responses of it run. */
interface RunningQuestion {
  key: Key;
  /** Undefined: more requests run than the API lists, none of the listed ones is the key's. */
  count: number | undefined;
}

const [runningQuestion, setRunningQuestion] = createSignal<RunningQuestion>();
export { runningQuestion };

export const closeRunningQuestion = (): void => setRunningQuestion();

/**
 * Asks whether the responses of a key are to end, if any run. Only after it is off, which must not wait for the answer.
 * @param isStillOff whether the question still makes sense
 */
export async function askAboutRunning(key: Key, isStillOff: () => boolean): Promise<void> {
  const running = await responseBody(api["in-flight"].get()).catch(() => undefined);
  if (running === undefined || !isStillOff()) return;
  const count = running.requests.filter(({ key_id: keyId }) => keyId === key.id).length;
  if (count > 0 || running.more) setRunningQuestion({ key, count: count > 0 ? count : undefined });
}
