// Health and readiness (here), metrics, the overview, backends, and the settings as they are.
//
// It keeps true: anyone may request `/readyz`, as often as they like, so what it needs is looked up at most once in a
// while, with a time limit, for all who ask. Only the database decides whether the server is ready: a backend that does
// not respond is told of. No secret is shown. Nothing is changed here but which backends drain.

import { type ElysiaCustomStatusResponse, status } from "elysia";
import type { BackendStates } from "../../domain/backends.ts";
import type { Catalog } from "../../domain/models.ts";
import type { Store } from "../../store/store.ts";
import type { WallClock } from "../../time/clock.ts";
import type { HealthBody, ReadinessBody } from "./contract.ts";

const upstreamMaxAgeMs = 3000;
const databaseMaxAgeMs = 1000;
const checkTimeoutMs = 2000;

export interface UpstreamProbe {
  ok: boolean;
  cause?: string;
}

export interface HealthDeps {
  store: Pick<Store, "checkWritable">;
  clock: WallClock;
  probeUpstream: (signal: AbortSignal) => Promise<UpstreamProbe>;
  catalog: () => Catalog;
  backendStates: BackendStates["list"];
  /** Since when no request of a client got a response; undefined if the last one did. */
  requestsFailSince: () => number | undefined;
  countsState: () => ReadinessBody["counts"];
  limitsState: () => ReadinessBody["limits"];
}

export interface Health {
  checkUpstream(): Promise<{
    ok: boolean;
    /** Epoch milliseconds. */
    checkedAt: number;
    /** Since when it is known not to respond; undefined while it is ok. */
    failingSince: number | undefined;
    /** Why it is not ok: a code of the system or of TLS, or a word such as `timeout`. */
    cause: string | undefined;
  }>;
  checkDatabase(): Promise<boolean>;
  /** Undefined without a file of models, and if those who know them do not reply. */
  listBackends(): Promise<ReadinessBody["backends"]>;
  countsState(): ReadinessBody["counts"];
  limitsState(): ReadinessBody["limits"];
}

export function createHealth(deps: HealthDeps): Health {
  const { store, clock, probeUpstream, requestsFailSince, catalog, backendStates, countsState, limitsState } = deps;
  const failures = trackFailures(requestsFailSince);
  return {
    checkUpstream: cached(clock, upstreamMaxAgeMs, async () => {
      const timedOut: UpstreamProbe = { ok: false, cause: "timeout" };
      const { ok, cause } = await withTimeout(checkTimeoutMs, timedOut, probeUpstream);
      const checkedAt = clock();
      return { ok, checkedAt, failingSince: failures.since(ok, checkedAt), cause: ok ? undefined : cause };
    }),
    checkDatabase: cached(clock, databaseMaxAgeMs, () =>
      withTimeout(checkTimeoutMs, false, async () => {
        await store.checkWritable();
        return true;
      }),
    ),
    listBackends: cached(clock, upstreamMaxAgeMs, () =>
      withTimeout(checkTimeoutMs, undefined, async () =>
        catalog().file === undefined ? undefined : (await backendStates()).map(({ name, state }) => ({ name, state })),
      ),
    ),
    countsState,
    limitsState,
  };
}

/** The probes run only while somebody looks, so the clients' requests may have failed earlier. */
function trackFailures(requestsFailSince: () => number | undefined) {
  let okAt = -Infinity;
  let probesFailSince: number | undefined;
  return {
    since(ok: boolean, now: number): number | undefined {
      if (ok) {
        okAt = now;
        probesFailSince = undefined;
        return undefined;
      }
      probesFailSince ??= now;
      const since = requestsFailSince() ?? now;
      return since < okAt ? probesFailSince : Math.min(probesFailSince, since);
    },
  };
}

export const getHealth = (): HealthBody => ({ status: "ok" });

export const getReadiness =
  ({ health }: { health: Health }) =>
  async (): Promise<ElysiaCustomStatusResponse<200 | 503, ReadinessBody>> => {
    const [database, upstream, backends] = await Promise.all([
      health.checkDatabase(),
      health.checkUpstream(),
      health.listBackends(),
    ]);
    return status(database ? 200 : 503, {
      status: database ? "ready" : "unavailable",
      database: database ? "ok" : "not writable",
      upstream: upstream.ok ? "ok" : "not answering",
      ...(backends !== undefined && { backends }),
      counts: health.countsState(),
      limits: health.limitsState(),
    });
  };

/**
 * Calls `load` at most once in `maxAgeMs` and shares the result, so that frequent callers cost no more than one. After the
 * clock was set back, a result seems to be of the future, and is too old as well.
 */
export function cached<T>(clock: WallClock, maxAgeMs: number, load: () => Promise<T>): () => Promise<T> {
  let latest: { at: number; value: Promise<T> } | undefined;
  return () => {
    if (latest === undefined || Math.abs(clock() - latest.at) >= maxAgeMs) latest = { at: clock(), value: load() };
    return latest.value;
  };
}

/** @returns `fallback` if `work` fails or takes longer than `timeoutMs`; the signal then aborts it */
export async function withTimeout<T>(
  timeoutMs: number,
  fallback: T,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const signal = AbortSignal.timeout(timeoutMs);
  const timedOut = new Promise<T>((resolve) => signal.addEventListener("abort", () => resolve(fallback)));
  return Promise.race([work(signal).catch(() => fallback), timedOut]);
}
