import type { WallClock } from "../time/clock.ts";
import { createDatabaseStore } from "./database.ts";
import { createGpuStore } from "./gpu.ts";
import { createKeyStore } from "./keys.ts";
import { createLimitStore } from "./limits.ts";
import { createSessionStore } from "./sessions.ts";
import { createSettingsStore } from "./settings.ts";
import type { Engine } from "./engine.ts";
import { createReconciliationStore } from "./reconciliation.ts";
import { createRequestLogStore } from "./requests.ts";
import { defaultRetention } from "./retention.ts";
import type { Store } from "./store.ts";
import { createTrafficStore } from "./traffic.ts";
import { createUsageStore } from "./usage.ts";

/** The store over one engine, which the caller measures and closes. On SQLite, calls must not overlap. */
export type SqlStore = Omit<Store, "size" | "close">;

export function createSqlStore(engine: Engine, clock: WallClock, retention = defaultRetention): SqlStore {
  const settings = createSettingsStore(engine);
  const usage = createUsageStore(engine, clock, retention);
  return {
    keys: createKeyStore(engine, clock),
    usage,
    limits: createLimitStore(engine, clock),
    requests: createRequestLogStore(engine, clock, retention.requestLog),
    traffic: createTrafficStore(engine, clock),
    reconciliation: createReconciliationStore(engine, settings, usage),
    database: createDatabaseStore(engine),
    gpu: createGpuStore(engine, clock),
    sessions: createSessionStore(engine, clock),
    settings,
    checkWritable: () => settings.set("last_write_check", String(clock())),
  };
}
