import type { Retention } from "../../store/retention.ts";
import type { Store } from "../../store/store.ts";
import { timestampOf } from "../../time/seoul.ts";
import type { SettingsBody } from "./contract.ts";

export interface SettingsDeps {
  store: Pick<Store, "database">;
  settings: () => {
    name: string;
    value: string | null;
    isSet: boolean;
    isSecret: boolean;
    origin: "environment" | ".env" | "default";
    allowed: string;
  }[];
  versions: { tollgate: string; commit: string; bun: string };
  retention: Retention;
  passwordFromEnvironment: boolean;
}

export const getSettings =
  ({ store, settings, versions, retention, passwordFromEnvironment }: SettingsDeps) =>
  async (): Promise<SettingsBody> => {
    const { kind, version, sizeBytes } = await store.database.describe();
    const tables: SettingsBody["database"]["tables"] = [];
    // One after the other, so that counts are written in between.
    for (const name of await store.database.tables()) {
      const { rows, isExact } = await store.database.countRows(name);
      tables.push({ name, rows, is_exact: isExact });
    }
    return {
      settings: settings().map(({ name, value, isSet, isSecret, origin, allowed }) => ({
        name,
        value,
        is_set: isSet,
        is_secret: isSecret,
        origin,
        allowed,
      })),
      versions: { ...versions, database: `${kind === "sqlite" ? "SQLite" : "PostgreSQL"} ${version}` },
      database: { kind, size_bytes: sizeBytes, tables },
      retention: retentionOf(retention),
      backup: backupOf(await store.database.backups(), kind),
      password_from_environment: passwordFromEnvironment,
    };
  };

const commands = {
  sqlite: "tollgate backup --keep 7 /var/backups/tollgate",
  postgresql: 'pg_dump --format=custom --file=tollgate.dump "$DATABASE_URL"',
} as const;

type Backups = Awaited<ReturnType<Store["database"]["backups"]>>;

const backupOf = ({ succeeded, problem }: Backups, kind: keyof typeof commands): SettingsBody["backup"] => ({
  succeeded_at: succeeded === undefined ? null : timestampOf(succeeded.at),
  problem: problem === undefined ? null : { at: timestampOf(problem.at), reason: problem.reason },
  command: commands[kind],
});

const retentionOf = ({ usageMinutesDays, requestLog: { days, rows } }: Retention): SettingsBody["retention"] => [
  { data: "Totals by hour and day", keeps: "without limit" },
  { data: "Usage by minute", keeps: `${usageMinutesDays} days` },
  { data: "Usage by model and hour", keeps: "91 days" },
  { data: "Latencies and failures", keeps: "31 days" },
  { data: "Request log", keeps: days === 0 ? "off" : `${days} days, at most ${rows.toLocaleString("en-US")} requests` },
  { data: "GPU samples", keeps: "7 days" },
  { data: "GPUs by minute and hour", keeps: "32 days" },
  { data: "Record of changes", keeps: "400 days" },
];
