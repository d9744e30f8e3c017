import { type ElysiaCustomStatusResponse, status } from "elysia";
import type { Store } from "../store/store.ts";
import type { WallClock } from "../time/clock.ts";
import { cached, withTimeout } from "./cached.ts";
import type { HealthBody, ReadinessBody } from "./schemas.ts";

const upstreamMaxAgeMs = 3000;
const databaseMaxAgeMs = 1000;
const checkTimeoutMs = 2000;

export interface UpstreamState {
  ok: boolean;
  /** Epoch milliseconds. */
  checkedAt: number;
}

export interface HealthDeps {
  store: Pick<Store, "checkWritable">;
  clock: WallClock;
  probeUpstream: (signal: AbortSignal) => Promise<{ ok: boolean }>;
  countsState: () => ReadinessBody["counts"];
}

export interface Health {
  checkUpstream(): Promise<UpstreamState>;
  checkDatabase(): Promise<boolean>;
  countsState(): ReadinessBody["counts"];
}

/** The checks are cached, since anyone may request `/readyz`, as often as they like. */
export function createHealth({ store, clock, probeUpstream, countsState }: HealthDeps): Health {
  return {
    checkUpstream: cached(clock, upstreamMaxAgeMs, async () => {
      const ok = await withTimeout(checkTimeoutMs, false, async (signal) => (await probeUpstream(signal)).ok);
      return { ok, checkedAt: clock() };
    }),
    checkDatabase: cached(clock, databaseMaxAgeMs, () =>
      withTimeout(checkTimeoutMs, false, async () => {
        await store.checkWritable();
        return true;
      }),
    ),
    countsState,
  };
}

export const getHealth = (): HealthBody => ({ status: "ok" });

export const getReadiness =
  ({ health }: { health: Health }) =>
  async (): Promise<ElysiaCustomStatusResponse<200 | 503, ReadinessBody>> => {
    const [database, upstream] = await Promise.all([health.checkDatabase(), health.checkUpstream()]);
    return status(database ? 200 : 503, {
      status: database ? "ready" : "unavailable",
      database: database ? "ok" : "not writable",
      upstream: upstream.ok ? "ok" : "not answering",
      counts: health.countsState(),
    });
  };
