import { statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { ownCommandLine } from "../runtime/bun-settings.ts";
import type { Config } from "../config/config.ts";
import type { Backend } from "../domain/models.ts";
import { createLogWriter, createLog, type LogOptions, type Log } from "../log/log.ts";
import { findMisspeltSettings } from "./misspelt-settings.ts";
import type { ParentChannel } from "../supervisor/child-side.ts";
import { superviseProcesses } from "../supervisor/supervisor.ts";
import { followCatalog, openCatalog } from "../server/current-catalog.ts";
import { type Server, startServer } from "../server/server.ts";
import { CommandError, type CommandIo, serveProcessCommand, readArguments } from "./command.ts";
import { envFileOption, withServerSettings } from "./env-file.ts";
import { settingsOf } from "./settings.ts";
import { toCommandError } from "./start-errors.ts";
import { addressOf, connectTo } from "../proxy/upstream/connections.ts";
import { causeOf } from "../proxy/upstream/abort-reason.ts";
import { checkHealth, probeUpstream } from "../proxy/upstream/probe.ts";
import { warnOfLowDescriptorLimit } from "../telemetry/descriptors.ts";

export const summary = "serve the proxy, the admin API and the console (the default)";

export const chapter = "Deploy";

export const help = `tollgate serve [--env-file FILE]

Serves the proxy (/v1), the admin API (/api) and the console (/). Settings are environment variables,
or lines of FILE, by default of .env in the working folder. The most important:

  PROXY_UPSTREAM_URL   the backend (default: http://127.0.0.1:8000)
  MODELS_FILE          several backends and models instead, in YAML; see \`tollgate models\`
  HOST, PORT           address to listen on (default: 127.0.0.1, 8080)
  DATA_DIR             folder of the database (default: ./data)
  DATABASE_URL         postgres://… database to use instead, by any number of instances; requires
                       SECRET_KEY, with the same value for all instances
  ADMIN_PASSWORD       password of the console; by default the first start generates and prints one

The handbook lists all settings: the console has it under Help. SIGTERM, SIGINT or SIGHUP stops the
server after all running responses have ended, but no later than SHUTDOWN_GRACE seconds; a second
SIGTERM or SIGINT, at least one second later, stops it immediately.
`;

export async function run(args: string[], given: CommandIo): Promise<number> {
  const io = withServerSettings(given, readArguments("serve", args, envFileOption).values["env-file"]);
  const config = settingsOf(io);
  warnOfSettings(config, io);
  const count = countProcesses(config.processes);
  if (count > 1) return await serveWithProcesses(config, count, io);
  const server = await startServing(config, io);
  await untilStopped(io.signal);
  return (await server.stop()) ? 0 : 1;
}

function warnOfSettings(config: Pick<Config, "log" | "storage">, io: CommandIo): void {
  const log = createLog(logOptions(config, io));
  for (const { given, meant } of findMisspeltSettings(io.env)) {
    log.warn("Unknown environment variable ignored; is it misspelt?", { variable: given, setting: meant });
  }
  const { dataDir, databaseUrl } = config.storage;
  if (databaseUrl === undefined && isWritableByAll(dataDir)) {
    log.warn("Every user of this host can write to DATA_DIR and replace the database", { dataDir });
  }
}

/** An existing folder keeps its mode; a new one is only for its owner. */
function isWritableByAll(folder: string): boolean {
  try {
    return (statSync(folder).mode & 0o002) !== 0;
  } catch {
    // Missing, or opening the database reports the reason.
    return false;
  }
}

/** Only Linux balances connections between processes that listen on the same port. */
function countProcesses(processes: Config["processes"]): number {
  const isSupported = process.platform === "linux";
  if (processes === "auto") return isSupported ? availableParallelism() : 1;
  if (processes > 1 && !isSupported) throw new CommandError("PROCESSES > 1 requires Linux (handbook: More cores)", 2);
  return processes;
}

async function serveWithProcesses(config: Config, count: number, io: CommandIo): Promise<number> {
  const { env, signal } = io;
  const log = createLog({ ...logOptions(config, io), always: { pid: process.pid } });
  const command = ownCommandLine([serveProcessCommand]);
  try {
    const catalog = openCatalog(config, { environment: env, log, signal });
    void warnAtStart(catalog.get().backends, log, signal);
    return await superviseProcesses({ config, catalog, probe: checkHealth, count, command, env, log, signal });
  } catch (error) {
    throw await toCommandError(error, config);
  }
}

/** Starts the server. @throws CommandError for errors that the operator can fix */
export async function startServing(config: Config, io: CommandIo, parent?: ParentChannel): Promise<Server> {
  const always = parent === undefined ? {} : { pid: process.pid };
  const options = logOptions(config, io);
  const log = createLog({ ...options, always });
  try {
    const { shareStats, places, mayLogShared, machine } = parent ?? {};
    const catalog =
      parent === undefined || config.modelsFile === undefined
        ? openCatalog(config, { environment: io.env, log, signal: io.signal })
        : await followCatalog(parent.readCatalog, log);
    const server = await startServer(config, {
      clock: Date.now,
      log,
      catalog,
      print: options.write,
      environment: io.env,
      shareStats,
      processes: countProcesses(config.processes),
      places,
      mayLogShared,
      machine,
    });
    // Where there are several processes, the parent warns.
    if (parent === undefined) void warnAtStart(catalog.get().backends, log, io.signal);
    return server;
  } catch (error) {
    throw await toCommandError(error, config);
  }
}

function logOptions({ log }: Pick<Config, "log">, io: CommandIo): LogOptions {
  const write = createLogWriter(
    (text, written) => io.stdout.write(text, written),
    (lines) => createLog(options).warn("Log lines dropped; the reader of the log had stopped reading", { lines }),
  );
  const options: LogOptions = { ...log, clock: Date.now, write };
  return options;
}

export async function untilStopped(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}

/** How long the backend may take to accept a connection before a warning is logged. */
const firstProbeMs = 10_000;

/** Logs what would otherwise show only with the first requests or under load. */
async function warnAtStart(backends: readonly Backend[], log: Log, signal: AbortSignal): Promise<void> {
  warnOfLowDescriptorLimit(log);
  await Promise.all(backends.map((backend) => warnIfUnreachable(backend, log, signal)));
}

async function warnIfUnreachable(backend: Backend, log: Log, signal: AbortSignal): Promise<void> {
  const { url, baseUrl, socket } = backend;
  const ended = AbortSignal.any([signal, AbortSignal.timeout(firstProbeMs)]);
  try {
    // A connection is enough, and disturbs no backend; TLS fails only with a request.
    await (baseUrl.startsWith("https:") ? probeUpstream(backend, ended) : connectTo(addressOf(baseUrl, socket))(ended));
  } catch (error) {
    if (signal.aborted) return;
    log.warn("Backend not reachable; requests fail until it is", { backend: url, cause: causeOf(error) });
  }
}
