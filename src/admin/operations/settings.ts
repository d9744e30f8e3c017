import type { AdminDeps } from "../http/deps.ts";
import type { Retention } from "../../store/retention.ts";
import type { Store } from "../../store/store.ts";
import * as schema from "../http/schemas.ts";
import { msPerDay, timestampOf } from "../../time/seoul.ts";
import type { SettingsBody } from "./contract.ts";

export const getSettings =
  ({ store, settings, versions, retention, clock, passwordFromEnvironment }: AdminDeps) =>
  async (): Promise<SettingsBody> => {
    const { kind, version, sizeBytes } = await store.database.describe();
    const tables: SettingsBody["database"]["tables"] = [];
    // One after the other, so that counts are written in between.
    for (const name of await store.database.tables()) {
      tables.push({ name, ...schema.apiBody(await store.database.countRows(name)) });
    }
    return {
      settings: settings().map(schema.apiBody),
      versions: { ...versions, database: `${kind === "sqlite" ? "SQLite" : "PostgreSQL"} ${version}` },
      database: { kind, size_bytes: sizeBytes, tables },
      retention: retentionOf(retention, await logHolds(store.requests, clock())),
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

/** With its entries in indexes, and how many deletion takes at least where its pages are not in memory; measured on SQLite. */
const [bytesPerRow, deletedPerMinute] = [220, 30_000];
const mb = 1e6;
const grouped = (value: number): string => Math.ceil(value).toLocaleString("en-US");

async function logHolds(requests: Store["requests"], now: number): Promise<string | undefined> {
  const [first, lastId] = [await requests.oldest(), await requests.lastId()];
  if (first === undefined) return undefined;
  const rows = lastId - first.id + 1;
  const aDay = rows / Math.max(1, (now - first.endedAt) / msPerDay);
  const frees = `${grouped((aDay * bytesPerRow) / mb)} MB within ${grouped(aDay / deletedPerMinute)} min`;
  return `${grouped(rows)} requests, about ${grouped((rows * bytesPerRow) / mb)} MB; a day less frees ${frees}`;
}

const retentionOf = (
  { usageMinutesDays, requestLog: { days, rows } }: Retention,
  holds: string | undefined,
): SettingsBody["retention"] => [
  { data: "Totals by hour and day", keeps: "without limit" },
  { data: "Usage by minute", keeps: `${usageMinutesDays} days` },
  { data: "Usage by model and hour", keeps: "91 days" },
  { data: "Latencies and failures", keeps: "31 days" },
  {
    data: "Request log",
    keeps: days === 0 ? "off" : `${days} days, at most ${grouped(rows)} requests`,
    ...(holds !== undefined && { holds }),
  },
  { data: "GPU samples", keeps: "7 days" },
  { data: "GPUs by minute and hour", keeps: "32 days" },
  { data: "Record of changes", keeps: "400 days" },
];
