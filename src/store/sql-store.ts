import type { WallClock } from "../time/clock.ts";
import { createDatabaseStore } from "./database.ts";
import { createGpuStore } from "./gpu.ts";
import { createKeyStore } from "./keys.ts";
import { createSessionStore } from "./sessions.ts";
import { createSettingsStore } from "./settings.ts";
import type { Engine } from "./engine.ts";
import { createReconciliationStore } from "./reconciliation.ts";
import { createRequestLogStore } from "./requests.ts";
import type { RequestLogLimits } from "./request-log-store.ts";
import type { Store } from "./store.ts";
import { createTrafficStore } from "./traffic.ts";
import { createUsageStore } from "./usage.ts";

export const defaultRequestLogLimits: RequestLogLimits = { days: 7, rows: 5_000_000 };

/** The store over one engine, which the caller closes. On SQLite, calls must not overlap. */
export type SqlStore = Omit<Store, "close">;

export function createSqlStore(engine: Engine, clock: WallClock, limits = defaultRequestLogLimits): SqlStore {
  const settings = createSettingsStore(engine);
  const usage = createUsageStore(engine, clock, limits);
  return {
    keys: createKeyStore(engine),
    usage,
    requests: createRequestLogStore(engine),
    traffic: createTrafficStore(engine, clock),
    reconciliation: createReconciliationStore(engine, settings, usage),
    database: createDatabaseStore(engine),
    gpu: createGpuStore(engine),
    sessions: createSessionStore(engine, clock),
    settings,
    checkWritable: () => settings.set("last_write_check", String(clock())),
  };
}
