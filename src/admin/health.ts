import type { WallClock } from "../time/clock.ts";
import { findBearer } from "../credentials.ts";
import type { Store } from "../store/store.ts";
import { answerWithin, cached } from "./cached.ts";
import { equalSecrets } from "./secrets.ts";

const rememberUpstreamMs = 3000;
const rememberDatabaseMs = 1000;
const deadlineMs = 2000;

export interface UpstreamState {
  ok: boolean;
  /** Epoch milliseconds. */
  checkedAt: number;
}

export interface Readiness {
  database: boolean;
  upstream: boolean;
}

export interface HealthDeps {
  store: Pick<Store, "checkWritable">;
  clock: WallClock;
  probeUpstream: (signal: AbortSignal) => Promise<{ ok: boolean }>;
}

export interface Health {
  upstream(): Promise<UpstreamState>;
  readiness(): Promise<Readiness>;
}

/** Anybody may ask whether we are ready, as often as they like: what that costs is shared. */
export function createHealth({ store, clock, probeUpstream }: HealthDeps): Health {
  const upstream = cached(clock, rememberUpstreamMs, async () => {
    const ok = await answerWithin(deadlineMs, false, async (signal) => (await probeUpstream(signal)).ok);
    return { ok, checkedAt: clock() };
  });
  const databaseWritable = cached(clock, rememberDatabaseMs, () =>
    answerWithin(deadlineMs, false, async () => {
      await store.checkWritable();
      return true;
    }),
  );
  return {
    upstream,
    async readiness() {
      const [database, { ok }] = await Promise.all([databaseWritable(), upstream()]);
      return { database, upstream: ok };
    },
  };
}

/** `token` undefined: nobody gets in this way. */
export function presentsMetricsToken(headers: Headers, token: string | undefined): boolean {
  const presented = findBearer(headers);
  return token !== undefined && presented !== undefined && equalSecrets(presented, token);
}
