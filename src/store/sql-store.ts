import type { WallClock } from "../time/clock.ts";
import { createBackendStore } from "./backends/backends.ts";
import { createNoticeStore, createStateStore } from "./backends/states.ts";
import { createDatabaseStore } from "./engine/database.ts";
import { createGpuStore } from "./gpu/gpu.ts";
import { createKeyStore } from "./keys/keys.ts";
import { createSubjectStore } from "./keys/subjects.ts";
import { prepareSee } from "./keys/find-or-create-user.ts";
import { createLimitStore } from "./limits/limits.ts";
import { createAuditStore, createRecordChange } from "./accounts/audit.ts";
import { createSessionStore } from "./accounts/sessions.ts";
import { createSignInStore } from "./accounts/sign-ins.ts";
import { createSettingsStore } from "./accounts/settings.ts";
import { createTokenStore } from "./accounts/tokens.ts";
import type { Engine } from "./engine/engine.ts";
import { createReconciliationStore } from "./usage/reconciliation.ts";
import { prepareMaintenance } from "./maintenance.ts";
import { createRequestLogStore } from "./requests/requests.ts";
import { defaultRetention } from "./retention.ts";
import { createTrafficStore } from "./traffic/traffic.ts";
import { createUsageStore } from "./usage/usage.ts";

/** The store over one engine, which the caller measures and closes. On SQLite, calls must not overlap. */
export type SqlStore = ReturnType<typeof createSqlStore>;

export function createSqlStore(engine: Engine, clock: WallClock, retention = defaultRetention) {
  const record = createRecordChange(engine, clock);
  const settings = createSettingsStore(engine, record);
  const usage = createUsageStore(engine, clock);
  return {
    keys: createKeyStore(engine, clock, record),
    subjects: { ...createSubjectStore(engine, clock, record), see: prepareSee(engine, clock) },
    usage,
    limits: createLimitStore(engine, clock),
    requests: createRequestLogStore(engine),
    traffic: createTrafficStore(engine),
    reconciliation: createReconciliationStore(engine, settings, usage),
    backends: createBackendStore(engine, clock, record),
    states: createStateStore(engine, clock, record),
    notices: createNoticeStore(engine, clock),
    database: createDatabaseStore(engine, settings),
    gpu: createGpuStore(engine, clock),
    sessions: createSessionStore(engine, record),
    signIns: createSignInStore(engine, clock, record),
    tokens: createTokenStore(engine, record),
    audit: createAuditStore(engine, clock, record),
    settings,
    /**
     * One short portion of what keeps the database small: deletes rows whose time is over, then gives space back.
     * @returns whether there is more to do now
     */
    maintain: prepareMaintenance(engine, clock, retention),
    /** Writes a row. @throws StorageError if the database cannot be written */
    checkWritable: () => settings.set("last_write_check", String(clock())),
  };
}
