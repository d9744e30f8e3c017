import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { passwordHashSetting } from "../../src/admin/session/password.ts";
import type { WallClock } from "../../src/time/clock.ts";
import { type Environment, readConfig } from "../../src/config/config.ts";
import type { CurrentCatalog } from "../../src/domain/models.ts";
import { createLog } from "../../src/log/log.ts";
import { openCatalog } from "../../src/server/current-catalog.ts";
import { startServer } from "../../src/server/server.ts";
import { openStore } from "../../src/store/open.ts";
import { createChangeNotifier } from "./change-notifier.ts";
import { clientOf } from "./client.ts";
import { copyDatabaseWithPassword } from "./migrated-database.ts";
import { type EngineName, sharedPostgres, takeDatabase } from "./postgres.ts";
import { clientWith, logIn, password, quickPasswordHash } from "./admin-client.ts";
import { signIn } from "./sign-in.ts";

export type LogEntry = Readonly<Record<string, unknown>>;

export type Tollgate = Awaited<ReturnType<typeof startTollgate>>;

export interface TollgateOptions {
  clock?: WallClock;
  /** An existing folder, which is kept. */
  dataDir?: string;
  /** By default SQLite, unless the environment has DATABASE_URL. */
  engine?: EngineName;
  /** By default what the environment says. */
  catalog?: CurrentCatalog;
}

/** A changed models file is seen soon. */
const followMs = 20;
const logDeadlineMs = 20_000;

/** A complete server in this process, on free ports, with its own database and one key. */
export async function startTollgate(environment: Environment = {}, options: TollgateOptions = {}) {
  const { clock = Date.now, engine = "SQLite" } = options;
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), "tollgate-test-")));
  const database = engine === "PostgreSQL" ? await takeDatabase() : undefined;
  if (database !== undefined) await storePassword(database.url);
  else if ((options.dataDir ?? environment["DATABASE_URL"]) === undefined) copyDatabaseWithPassword(dataDir);
  const { log, write, waitForLog } = createLogRecorder();
  const config = readConfig(
    {
      PORT: "0",
      DATA_DIR: dataDir,
      DATABASE_URL: database?.url,
      ADMIN_PASSWORD: password,
      SECRET_KEY: "0123456789abcdef",
      ...environment,
    },
    false,
  );
  const logged = createLog({ level: "debug", format: "json", clock, write });
  const following = new AbortController();
  const server = await startServer(config, {
    clock,
    log: logged,
    catalog: openCatalog(config, { environment, log: logged, signal: following.signal, intervalMs: followMs }),
    print: () => {},
    ...(options.catalog && { catalog: options.catalog }),
  });
  const admin = await logIn(server.adminUrl, "admin", environment["ADMIN_PASSWORD"] ?? password);
  const { key, id } = await admin.createKey("test");

  let stopped: Promise<boolean> | undefined;
  const stop = (): Promise<boolean> => {
    following.abort();
    return (stopped ??= server.stop());
  };
  return {
    ...clientOf(server.url, key),
    url: server.url,
    adminUrl: server.adminUrl,
    admin,
    /** The API key. */
    key,
    keyId: id,
    /** The key as the admin API lists it. */
    readKey: async () => {
      const row = (await admin.listKeys()).find((listed) => listed.id === id);
      if (row === undefined) throw new Error("The key no longer exists");
      return row;
    },
    log,
    waitForLog,
    /** Of somebody who signs in at a provider. */
    async signIn(person: Parameters<typeof signIn>[1]) {
      const store = await openStore({ dataDir, databaseUrl: database?.url, clock, log: logged });
      const signedIn = await signIn({ store, signingKey: config.admin.secretKey ?? "", clock }, person);
      await store.close();
      return { ...signedIn, ...clientWith(server.adminUrl, signedIn.cookie, signedIn.csrf) };
    },
    /** Stops the server. Later calls wait for the same stop. */
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
      database?.release();
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** As `copyDatabaseWithPassword` does. */
async function storePassword(url: string): Promise<void> {
  const values = `('${passwordHashSetting}', '${quickPasswordHash}')`;
  await (await sharedPostgres()).run(`insert into settings (name, value) values ${values}`, url);
}

function createLogRecorder() {
  const log: LogEntry[] = [];
  const { notify, waitFor } = createChangeNotifier(logDeadlineMs, () => JSON.stringify(log.slice(-5)));
  return {
    /** All log entries so far. */
    log: log as readonly LogEntry[],
    write(line: string): void {
      log.push(JSON.parse(line));
      notify();
    },
    /** The first past or future entry that matches. */
    waitForLog: (matches: (entry: LogEntry) => boolean) => waitFor("such log entry", () => log.find(matches)),
  };
}
