import type { Log } from "../log/log.ts";
import { type BackendCounters, findBackendCounters } from "./backend-counters.ts";

export interface ReconcilerDeps {
  /** The backend's metrics as text; undefined if it serves none. May reject. */
  fetchMetrics: (signal: AbortSignal) => Promise<string | undefined>;
  /** Stores the counters, and compares them with what was counted since the last ones. */
  write: (counters: BackendCounters) => Promise<void>;
  log: Log;
}

const intervalMs = 60_000;
/** For a backend without such metrics. */
const rareIntervalMs = 15 * 60_000;
const timeoutMs = 5000;

/** Reads the backend's token counters once a minute. @returns stops it */
export function startReconciler({ fetchMetrics, write, log }: ReconcilerDeps): () => void {
  const stopped = new AbortController();
  let timer = setTimeout(() => void reconcile(), intervalMs);

  async function reconcile(): Promise<void> {
    let counters: BackendCounters | undefined;
    try {
      const text = await fetchMetrics(AbortSignal.any([stopped.signal, AbortSignal.timeout(timeoutMs)]));
      counters = text === undefined ? undefined : findBackendCounters(text);
      if (counters !== undefined) await write(counters);
    } catch (error) {
      log.debug("Backend's token counters not read", { error: String(error) });
    }
    if (!stopped.signal.aborted) {
      timer = setTimeout(() => void reconcile(), counters === undefined ? rareIntervalMs : intervalMs);
    }
  }

  return () => {
    stopped.abort();
    clearTimeout(timer);
  };
}
