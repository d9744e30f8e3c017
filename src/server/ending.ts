import type { Listener } from "../runtime/listen.ts";
import type { Listeners } from "./listeners.ts";
import { monotonic, type Services } from "./services.ts";

/** For error frames and resets to go out before the process does. */
const lastWordsMs = 200;
/** For the counts of responses that were cut to reach the ledger. */
const lastCountsMs = 2000;
/** Counts are given at least this time to be written, however much of the grace is left. */
const minWriteMs = 5000;

/**
 * Refuses new requests, and ends the running ones: by themselves within the grace, or cut after it.
 * @returns what is left of the grace, in milliseconds
 */
export async function drain(graceMs: number, parts: Services, listeners: Listeners): Promise<number> {
  const graceEnds = monotonic() + graceMs;
  parts.log.info("Stopping: running responses may finish", { graceMs });
  parts.draining.abort();
  await drainListeners(new Set(Object.values(listeners)), graceMs, parts.stopping);
  await Promise.race([parts.inFlight.idle(), Bun.sleep(lastCountsMs)]);
  return graceEnds - monotonic();
}

async function drainListeners(listeners: Set<Listener>, graceMs: number, stopping: AbortController): Promise<void> {
  const drained = Promise.all([...listeners].map((listener) => listener.drain()));
  const inTime = await Promise.race([drained.then(() => true), Bun.sleep(graceMs).then(() => false)]);
  stopping.abort();
  if (inTime) return;
  await Promise.race([drained, Bun.sleep(lastWordsMs)]);
  for (const listener of listeners) await listener.cut();
}

/** Writes what is left. @returns whether all counts were written */
export async function closeParts(parts: Services, leftMs = 0): Promise<boolean> {
  const { recorder, ledger, admissions, endings, store, metrics } = parts;
  parts.stopReconciler();
  await Promise.race([recorder.close(), Bun.sleep(lastCountsMs)]);
  const isComplete = await ledger.close(Math.max(minWriteMs, leftMs));
  await admissions.close();
  endings.close();
  await store.close();
  metrics.close();
  return isComplete;
}
