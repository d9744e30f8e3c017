import type { WallClock } from "../time/clock.ts";
import { createGpuStore } from "./gpu.ts";
import { createKeyStore } from "./keys.ts";
import { createSessionStore } from "./sessions.ts";
import { createSettingsStore } from "./settings.ts";
import type { Engine } from "./engine.ts";
import { defaultRetention, type Retention, type Store } from "./store.ts";
import { createUsageStore } from "./usage.ts";

/** The store over one engine, which the caller measures and closes. On SQLite, calls must not overlap. */
export type SqlStore = Omit<Store, "size" | "close">;

export function createSqlStore(engine: Engine, clock: WallClock, retention: Retention = defaultRetention): SqlStore {
  const settings = createSettingsStore(engine);
  return {
    keys: createKeyStore(engine),
    usage: createUsageStore(engine, clock, retention),
    gpu: createGpuStore(engine),
    sessions: createSessionStore(engine, clock),
    settings,
    checkWritable: () => settings.set("last_write_check", String(clock())),
  };
}
