import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { AdminSetupError } from "../admin/bootstrap.ts";
import { ownCommandLine } from "../runtime/command-line.ts";
import type { Config } from "../config.ts";
import { createLogWriter } from "../log/log-writer.ts";
import { ListenError } from "../runtime/listen.ts";
import { createLog, type LogOptions } from "../log/log.ts";
import type { ParentChannel } from "../supervisor/child-side.ts";
import { superviseProcesses } from "../supervisor/supervisor.ts";
import { type Server, startServer } from "../server.ts";
import { StorageError } from "../store/store.ts";
import { CommandError, type CommandIo, serveProcessCommand } from "./command.ts";
import { settingsOf, storageName } from "./settings.ts";

export const summary = "serve the proxy, the admin API and the console (the default)";

export const help = `tollgate serve

Serves the proxy (/v1), the admin API (/api) and the console (/). Everything is set by environment
variables or a .env file in the working folder; these matter first:

  PROXY_UPSTREAM_URL   the backend (http://127.0.0.1:8000)
  HOST, PORT           where to listen (127.0.0.1, 8080)
  DATA_DIR             the folder that holds the database (./data)
  DATABASE_URL         postgres://…: all data lives there instead, for any number of instances;
                       SECRET_KEY must then be set, to the same value everywhere
  ADMIN_PASSWORD       the console's password; without it the first start makes one and prints it

The README lists all of them. SIGTERM or SIGINT ends the program once running responses have ended,
or after SHUTDOWN_GRACE seconds; another one, a second later or more, ends it at once.
`;

export async function run(args: string[], io: CommandIo): Promise<number> {
  refuseArguments(args);
  const config = settingsOf(io);
  const count = countProcesses(config.processes);
  if (count > 1) return await serveWithProcesses(config, count, io);
  const server = await startOrExplain(config, io);
  await untilStopped(io.signal);
  await server.stop();
  return 0;
}

function refuseArguments(args: string[]): void {
  try {
    parseArgs({ args, options: {}, strict: true });
  } catch {
    throw new CommandError("serve takes no arguments; everything is set by environment variables", 2);
  }
}

/** Only Linux spreads connections among the processes that listen on one port. */
function countProcesses(processes: Config["processes"]): number {
  const spreads = process.platform === "linux";
  if (processes === "auto") return spreads ? availableParallelism() : 1;
  if (processes > 1 && !spreads) throw new CommandError("PROCESSES: more than one takes Linux; leave it unset", 2);
  return processes;
}

async function serveWithProcesses(config: Config, count: number, io: CommandIo): Promise<number> {
  const { env, signal } = io;
  const log = createLog({ ...logOptions(config, io), always: { pid: process.pid } });
  const command = ownCommandLine([serveProcessCommand]);
  return superviseProcesses({ config, count, command, env, log, signal }).catch((error) => explain(error, config));
}

/** @throws CommandError with one line where what is wrong is the operator's to put right */
export async function startOrExplain(config: Config, io: CommandIo, member?: ParentChannel): Promise<Server> {
  const always = member === undefined ? {} : { pid: process.pid };
  const options = logOptions(config, io);
  const log = createLog({ ...options, always });
  return startServer(config, { clock: Date.now, log, print: options.write, shareStats: member?.shareStats }).catch(
    (error) => explain(error, config),
  );
}

function logOptions(config: Config, io: CommandIo): LogOptions {
  return { ...config.log, clock: Date.now, write: createLogWriter((text) => io.stdout.write(text)) };
}

function explain(error: unknown, config: Config): never {
  if (error instanceof ListenError) throw new CommandError(error.message, 1, { cause: error });
  if (error instanceof StorageError || error instanceof AdminSetupError) {
    throw new CommandError(`${storageName(config)}: ${error.message}`);
  }
  throw error;
}

export async function untilStopped(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}
