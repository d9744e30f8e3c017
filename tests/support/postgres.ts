import { existsSync, readdirSync } from "node:fs";
import { chown, mkdir } from "node:fs/promises";
import { SQL } from "bun";
import { openPostgresStore } from "../../src/store/postgres/open.ts";
import { findFreePort } from "./free-port.ts";
import { createTempFolder } from "./temp-folder.ts";

export type Postgres = Awaited<ReturnType<typeof startPostgres>>;

const bin = findBin();

/** Why PostgreSQL cannot be used; undefined if it is installed. */
export const whyNoPostgres: string | undefined =
  bin === undefined ? "PostgreSQL is not installed (apt-get install postgresql): its tests are skipped" : undefined;

if (whyNoPostgres !== undefined) {
  if (process.env["TOLLGATE_NEEDS_POSTGRES"] === "1") throw new Error(whyNoPostgres);
  process.stderr.write(`${whyNoPostgres}\n`);
}

let shared: Promise<Postgres> | undefined;

/** One server for all tests of this process. A test that stops its server starts its own. */
export const sharedPostgres = (): Promise<Postgres> =>
  (shared ??= startPostgres().catch((error: unknown) => {
    // Bun kills what a test has started that takes too long. The next one tries again.
    shared = undefined;
    throw error;
  }));

export type EngineName = "SQLite" | "PostgreSQL";

const free: string[] = [];

/** A database with all tables and no rows. It is one that an earlier test released, or a new one. */
export async function takeDatabase() {
  const url = free.pop() ?? (await createMigratedDatabase());
  await (await sharedPostgres()).run(emptyTables, url);
  return {
    url,
    /** Lets a later test have it. Nothing may use it any more. */
    release: () => void free.push(url),
  };
}

async function createMigratedDatabase(): Promise<string> {
  const url = await (await sharedPostgres()).createDatabase();
  await (await openPostgresStore({ url, clock: Date.now })).close();
  return url;
}

/** Deletes all rows and lets ids begin anew. TRUNCATE takes ten times as long, because it writes new files. */
export const emptyTables = `do $$
  declare one text;
  begin
    for one in select tablename from pg_tables where schemaname = 'public' and tablename <> 'tollgate_migrations' loop
      execute format('delete from %I', one);
    end loop;
    perform setval(format('%I', sequencename)::regclass, 1, false) from pg_sequences where schemaname = 'public';
  end $$`;

/**
 * A PostgreSQL server for tests, on loopback, in a temporary folder. It ends with the test process.
 * @param settings server settings such as `fsync=on`
 */
export async function startPostgres(settings: readonly string[] = ["fsync=off"]) {
  if (bin === undefined) throw new Error(whyNoPostgres);
  const folder = createTempFolder();
  const data = folder.file("data");
  await mkdir(data, { mode: 0o700 });
  const asOwner = await ownedByUnprivileged([folder.path, data]);
  const port = findFreePort();
  const urlOf = (database: string): string => `postgres://tollgate@127.0.0.1:${port}/${database}`;
  const initOptions = "-A trust -U tollgate -N -E UTF8 --locale=C".split(" ");
  await runToEnd([...asOwner, `${bin}/initdb`, "-D", data, ...initOptions]);
  const options = [`port=${port}`, "listen_addresses=127.0.0.1", "unix_socket_directories=", ...settings];

  const warden = startWarden(folder.path, [...asOwner, `${bin}/pg_ctl`, "-D", data, "-m", "immediate", "stop"]);
  const pgCtl = (...args: string[]) => runToEnd([...asOwner, `${bin}/pg_ctl`, "-D", data, "-w", ...args]);
  const start = () =>
    pgCtl(
      "-l",
      folder.file("data/server.log"),
      "-o",
      options.map((option) => `-c ${option.replace(/=$/, "=''")}`).join(" "),
      "start",
    );
  await start();

  const run = async (statement: string, url = urlOf("postgres")): Promise<Record<string, unknown>[]> => {
    await using client = new SQL(url, { max: 1 });
    return (await client.unsafe(statement)) as Record<string, unknown>[];
  };
  let databases = 0;
  return {
    /** Runs a statement as the superuser, by default in the database `postgres`. */
    run,
    /** Creates an empty database. @returns its address */
    async createDatabase() {
      const name = `tollgate_${++databases}`;
      await run(`create database ${name}`);
      return urlOf(name);
    },
    /** Ends every client connection. */
    async cutConnections() {
      await run(
        "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
      );
    },
    /** Cuts the connections and waits until the server is down. */
    stop: () => pgCtl("-m", "fast", "stop"),
    /** Waits until the server accepts connections. */
    start,
    /** Stops responding but keeps its connections, as if the network dropped every packet. */
    freeze: () => signalAll(data, "SIGSTOP"),
    thaw: () => signalAll(data, "SIGCONT"),
    async [Symbol.asyncDispose]() {
      await warden.stdin.end();
      await warden.exited;
    },
  };
}

/** Signals the server and its child processes, one of which serves each connection. */
async function signalAll(dataFolder: string, signal: NodeJS.Signals): Promise<void> {
  const server = Number((await Bun.file(`${dataFolder}/postmaster.pid`).text()).split("\n", 1)[0]);
  const children = (await Bun.file(`/proc/${server}/task/${server}/children`).text()).trim().split(" ");
  for (const pid of [server, ...children.map(Number)]) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      // The process of a connection that was just closed may end in between.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

/** Ends the server and removes its folder when its standard input closes, which happens however the test process ends. */
function startWarden(folder: string, stop: readonly string[]): Bun.Subprocess<"pipe", "ignore", "ignore"> {
  const script = 'folder=$1; shift; read -r _; "$@"; rm -rf "$folder"';
  const warden = Bun.spawn(["sh", "-c", script, "sh", folder, ...stop], {
    cwd: "/",
    stdin: "pipe",
    stdout: "ignore",
    stderr: "ignore",
    detached: true,
  });
  warden.unref();
  return warden;
}

function findBin(): string | undefined {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : [];
  const onPath = Bun.which("initdb");
  const found = versions.map((version) => `${debian}/${version}/bin`).find((path) => existsSync(`${path}/initdb`));
  return found ?? onPath?.replace(/\/initdb$/, "");
}

/** Hands the paths to an unprivileged user, because PostgreSQL refuses to run as root. @returns the prefix for its commands */
export async function ownedByUnprivileged(paths: readonly string[]): Promise<string[]> {
  if (process.getuid?.() !== 0) return [];
  const [uid, gid] = ["-u", "-g"].map((flag) => Number(Bun.spawnSync(["id", flag, "nobody"]).stdout.toString())) as [
    number,
    number,
  ];
  for (const path of paths) await chown(path, uid, gid);
  return ["setpriv", "--reuid", String(uid), "--regid", String(gid), "--clear-groups"];
}

async function runToEnd(command: string[]): Promise<void> {
  // The server inherits these; a pipe would never reach its end for the reader.
  const child = Bun.spawn(command, {
    cwd: "/",
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
    env: { LC_ALL: "C", PATH: process.env["PATH"] },
  });
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")} failed`);
}
