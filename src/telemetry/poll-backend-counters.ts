import type { Backend, Catalog, CurrentCatalog } from "../domain/models.ts";
import type { Log } from "../log/log.ts";
import { type BackendCounters, findBackendCounters } from "./backend-counters.ts";

const intervalMs = 60_000;
/** So many intervals may pass until a backend that starts, or restarts, serves its metrics. */
const maxMisses = 10;
/** A backend without such metrics is asked this rarely. */
const rareIntervalMs = 15 * 60_000;
const timeoutMs = 5000;

/** Reads the backend's token counters once a minute. @returns stops it */
export function pollBackendCounters(options: {
  /** The backend's metrics as text; undefined if it serves none. May reject. */
  fetchMetrics: (signal: AbortSignal) => Promise<string | undefined>;
  /** Stores the counters, and compares them with what was counted since the last ones, unless a read failed since. */
  write: (counters: BackendCounters & { afterMiss: boolean }) => Promise<void>;
  /** The counters began anew, so the backend did too. */
  onRestarted: () => void;
  log: Log;
}): () => void {
  const { fetchMetrics, write, onRestarted, log } = options;
  const stopped = new AbortController();
  let timer = setTimeout(() => void poll(), intervalMs);
  /** How many times in a row there were no counters. */
  let misses = 0;
  let last: BackendCounters | undefined;

  async function poll(): Promise<void> {
    misses++;
    try {
      const text = await fetchMetrics(AbortSignal.any([stopped.signal, AbortSignal.timeout(timeoutMs)]));
      const counters = text === undefined ? undefined : findBackendCounters(text);
      if (counters !== undefined) {
        const afterMiss = misses > 1;
        misses = 0;
        if (last !== undefined && isOfNewProcess(counters, last)) onRestarted();
        last = counters;
        await write({ ...counters, afterMiss });
      }
    } catch (error) {
      log.debug("Backend's token counters not read", { error: String(error) });
    }
    if (!stopped.signal.aborted) {
      timer = setTimeout(() => void poll(), misses < maxMisses ? intervalMs : rareIntervalMs);
    }
  }

  return () => {
    stopped.abort();
    clearTimeout(timer);
  };
}

const isOfNewProcess = (now: BackendCounters, last: BackendCounters): boolean =>
  now.startedAt !== last.startedAt ||
  now.generatedTokens < last.generatedTokens ||
  now.promptTokens < last.promptTokens;

/**
 * Has each backend of the catalog polled, and follows changes of it: one that left or moved is no longer polled as before.
 * @param start polls one. @returns stops that
 */
export function pollBackends(catalog: CurrentCatalog, start: (backend: Backend) => () => void): () => void {
  const polled = new Map<string, { address: string; stop: () => void }>();
  let isStopped = false;

  function follow({ backends }: Catalog): void {
    if (isStopped) return;
    const addresses = new Map(backends.map((backend) => [backend.name, addressOf(backend)]));
    for (const [name, { address, stop }] of polled) {
      if (addresses.get(name) === address) continue;
      stop();
      polled.delete(name);
    }
    for (const backend of backends) {
      if (polled.has(backend.name)) continue;
      polled.set(backend.name, { address: addressOf(backend), stop: start(backend) });
    }
  }

  follow(catalog.get());
  catalog.onReplaced(follow);
  return () => {
    isStopped = true;
    for (const { stop } of polled.values()) stop();
  };
}

const addressOf = ({ baseUrl, socket = "", apiKey = "" }: Backend): string => [baseUrl, socket, apiKey].join(" ");
