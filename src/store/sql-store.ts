import type { WallClock } from "../time/clock.ts";
import { createGpuStore } from "./gpu.ts";
import { createKeyStore } from "./keys.ts";
import { createLimitStore } from "./limits.ts";
import { createSessionStore } from "./sessions.ts";
import { createSettingsStore } from "./settings.ts";
import type { Engine } from "./engine.ts";
import type { Store } from "./store.ts";
import { createUsageStore } from "./usage.ts";

/** The store over one engine, which the caller closes. On SQLite, calls must not overlap. */
export type SqlStore = Omit<Store, "close">;

export function createSqlStore(engine: Engine, clock: WallClock): SqlStore {
  const settings = createSettingsStore(engine);
  return {
    keys: createKeyStore(engine, clock),
    usage: createUsageStore(engine, clock),
    limits: createLimitStore(engine, clock),
    gpu: createGpuStore(engine),
    sessions: createSessionStore(engine, clock),
    settings,
    checkWritable: () => settings.set("last_write_check", String(clock())),
  };
}
