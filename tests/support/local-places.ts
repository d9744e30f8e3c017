import type { Backend, CurrentCatalog } from "../../src/domain/models.ts";
import type { Log } from "../../src/log/log.ts";
import type { ProbeBackend } from "../../src/routing/backend-health.ts";
import { RequestQueue, type RequestQueueOptions } from "../../src/proxy/waiting.ts";
import { createLocalPlaces } from "../../src/routing/dispatch.ts";
import type { MonotonicClock } from "../../src/time/clock.ts";
import { backendOf, fileCatalog, replaceableCatalog } from "./catalog.ts";

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

export interface PlacesUnderTest {
  maxWaiting?: number;
  backendWaitMs?: number;
  probe?: ProbeBackend;
  monotonic?: MonotonicClock;
  catalog?: CurrentCatalog;
}

/** Places at backends that nothing else uses. */
export function startPlaces(backends: readonly Backend[], options: PlacesUnderTest = {}) {
  return createLocalPlaces({
    catalog: replaceableCatalog(fileCatalog(backends, [])),
    maxWaiting: 1000,
    backendWaitMs: 0,
    probe: async () => ({ ok: false }),
    received: async () => [],
    clock: Date.now,
    monotonic: () => performance.now(),
    log: silentLog,
    ...options,
  });
}

/** What waits for one backend that takes every request, and for limits that are not asked. */
export function startQueue(options: Partial<RequestQueueOptions> = {}): RequestQueue {
  return new RequestQueue({
    places: startPlaces([backendOf("backend")]),
    hasPlaces: false,
    admit: () => Promise.reject(new Error("the key has no limits")),
    timeoutMs: 0,
    lowTimeoutMs: 0,
    backendWaitMs: 0,
    maxInLine: 1000,
    hasOthers: () => false,
    monotonic: () => performance.now(),
    wall: () => 1_700_000_000_999,
    stopping: new AbortController().signal,
    onKeyEnded: () => {},
    ...options,
  });
}
