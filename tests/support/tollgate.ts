import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { WallClock } from "../../src/time/clock.ts";
import { type Environment, readConfig } from "../../src/config.ts";
import { createLog } from "../../src/log/log.ts";
import { startServer } from "../../src/server.ts";
import { databaseUrlForTest } from "./postgres.ts";
import { type AdminClient, type ListedKey, logIn } from "./admin-client.ts";

export type LogEntry = Readonly<Record<string, unknown>>;

/** A whole server in this process, on free ports and a database of its own, with one key. */
export interface Tollgate extends AsyncDisposable {
  url: string;
  adminUrl: string;
  admin: AdminClient;
  /** Opens `/v1`. */
  key: string;
  keyId: number;
  /** The key as the admin API lists it. */
  counted(): Promise<ListedKey>;
  /** Everything logged so far. */
  log: readonly LogEntry[];
  /** The first entry that fits, of those written and those to come. */
  waitForLog(fits: (entry: LogEntry) => boolean): Promise<LogEntry>;
  /** Once; further calls wait for the same end. */
  stop(): Promise<boolean>;
}

export interface TollgateOptions {
  clock?: WallClock;
  /** An existing one is kept. */
  dataDir?: string;
}

const password = "correct horse battery staple";
const logDeadlineMs = 20_000;

export async function startTollgate(environment: Environment = {}, options: TollgateOptions = {}): Promise<Tollgate> {
  const { clock = Date.now } = options;
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), "tollgate-test-")));
  const log: LogEntry[] = [];
  const watchers = new Set<(entry: LogEntry) => void>();
  const write = (line: string): void => {
    const entry: LogEntry = JSON.parse(line);
    log.push(entry);
    for (const watch of watchers) watch(entry);
  };
  const config = readConfig(
    {
      PORT: "0",
      DATA_DIR: dataDir,
      DATABASE_URL: options.dataDir === undefined ? await databaseUrlForTest() : undefined,
      ADMIN_PASSWORD: password,
      SECRET_KEY: "0123456789abcdef",
      ...environment,
    },
    false,
  );
  const server = await startServer(config, {
    clock,
    log: createLog({ level: "debug", format: "json", clock, write }),
    print: () => {},
  });
  const admin = await logIn(server.adminUrl, "admin", environment["ADMIN_PASSWORD"] ?? password);
  const { key, id } = await admin.createKey("test");

  let stopped: Promise<boolean> | undefined;
  const stop = (): Promise<boolean> => (stopped ??= server.stop());
  return {
    url: server.url,
    adminUrl: server.adminUrl,
    admin,
    key,
    keyId: id,
    counted: async () => {
      const row = (await admin.listKeys()).find((listed) => listed.id === id);
      if (row === undefined) throw new Error("The key is gone.");
      return row;
    },
    log,
    waitForLog: (fits) =>
      new Promise((resolve, reject) => {
        const finish = (entry: LogEntry): void => {
          clearTimeout(timer);
          watchers.delete(watch);
          resolve(entry);
        };
        const watch = (entry: LogEntry): void => {
          if (fits(entry)) finish(entry);
        };
        const timer = setTimeout(() => {
          watchers.delete(watch);
          reject(new Error(`No such log entry within ${logDeadlineMs} ms`));
        }, logDeadlineMs);
        watchers.add(watch);
        const earlier = log.find(fits);
        if (earlier !== undefined) finish(earlier);
      }),
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true });
    },
  };
}
