import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generatePassword } from "../admin/session/password.ts";
import { pricesSetting } from "../admin/usage/prices.ts";
import type { Config, Environment } from "../config/config.ts";
import { startDemoBackend } from "../demo/backend.ts";
import { demoModel } from "../demo/personas.ts";
import { demoPrices } from "../demo/prices.ts";
import { seed, simulateActivity } from "../demo/seed.ts";
import { ListenError } from "../runtime/listen.ts";
import { withServerSettings } from "./env-file.ts";
import { createLog } from "../log/log.ts";
import type { Server } from "../server/server.ts";
import { CommandError, type CommandIo, readArguments } from "./command.ts";
import { startServing, untilStopped } from "./serve.ts";
import { settingsOf } from "./settings.ts";

export const summary = "serve with a simulated model, clients and GPUs";

export const chapter = "First steps";

export const help = `tollgate demo

Serves like \`tollgate serve\`, with a simulated model, clients and GPU host, and 30 days of generated
history. Prints the address of the console, the password, an API key, and a curl command that streams
a completion. All data is in a temporary folder, which is deleted when the demo ends.

  HOST, PORT   address to listen on (default: 127.0.0.1, 8080; if 8080 is in use, any free port)

The other environment variables of \`tollgate serve\` apply too, except those for the backend, the
model names, the data, the key that signs sessions and the number of processes.
`;

export async function run(args: string[], given: CommandIo): Promise<number> {
  readArguments("demo", args, {});
  const io = withServerSettings(given, undefined);
  const dataDir = mkdtempSync(join(tmpdir(), "tollgate-demo-"));
  const removeData = (): void => rmSync(dataDir, { recursive: true, force: true });
  // A second signal exits without running the `finally` block.
  process.on("exit", removeData);
  const backend = await startDemoBackend();
  try {
    return await runDemo(dataDir, backend.url, io);
  } finally {
    backend.stop();
    process.off("exit", removeData);
    removeData();
  }
}

async function runDemo(dataDir: string, backendUrl: string, io: CommandIo): Promise<number> {
  const environment = environmentOf(io.env, dataDir, backendUrl);
  const config = settingsOf(io, environment);
  const log = createLog({ ...config.log, clock: Date.now, write: (line) => io.stdout.write(line) });
  const seeded = await seed({
    dataDir,
    clock: Date.now,
    log,
    backend: new URL(backendUrl).host,
    settings: { [pricesSetting]: JSON.stringify(demoPrices) },
  });
  const server = await startOnFreePort(environment, io);
  const ending = new AbortController();
  const activity = simulateActivity(seeded, server, ending.signal);
  io.stdout.write(welcome(server, seeded.key, dataDir, config.admin));
  await untilStopped(io.signal);
  ending.abort();
  await activity;
  await server.stop();
  return 0;
}

function environmentOf(env: Environment, dataDir: string, upstream: string): Environment {
  const valueOr = (name: string, fallback: string): string => env[name] || fallback;
  return {
    ...env,
    PROXY_UPSTREAM_URL: upstream,
    MODELS_FILE: "",
    BACKUP_DIR: "",
    PROXY_UPSTREAM_API_KEY: "",
    PROXY_ALIAS_MODEL: demoModel,
    PROXY_FAMILY_MODEL: demoModel,
    // So that the curl command, which does not request usage, is counted in tokens.
    PROXY_FORCE_STREAM_USAGE: valueOr("PROXY_FORCE_STREAM_USAGE", "final"),
    DATA_DIR: dataDir,
    DATABASE_URL: "",
    SECRET_KEY: "",
    PROCESSES: "",
    ADMIN_PASSWORD: valueOr("ADMIN_PASSWORD", generatePassword()),
    // Keeps the introduction on the screen.
    LOG_LEVEL: valueOr("LOG_LEVEL", "warn"),
    SHUTDOWN_GRACE: valueOr("SHUTDOWN_GRACE", "2"),
  };
}

/** Falls back to a free port if the default port is in use and no port was set. */
async function startOnFreePort(environment: Environment, io: CommandIo): Promise<Server> {
  const start = (env: Environment): Promise<Server> => startServing(settingsOf(io, env), { ...io, env });
  try {
    return await start(environment);
  } catch (error) {
    const portInUse = error instanceof CommandError && error.cause instanceof ListenError;
    if (!portInUse || (environment["PORT"] ?? "") !== "") throw error;
    return start({ ...environment, PORT: "0" });
  }
}

function welcome(server: Server, key: string, dataDir: string, { username, password }: Config["admin"]): string {
  const body = JSON.stringify({ model: demoModel, stream: true, messages: [{ role: "user", content: "Hello!" }] });
  return `
  This is a demo: model, clients, GPUs and 30 days of history are simulated. Ctrl-C ends it and deletes ${dataDir}

    Console    ${browserUrl(server.adminUrl)}
    Username   ${username}
    Password   ${password}
    API key    ${key}

  Paste this into another terminal to stream a completion:

curl -N ${browserUrl(server.url)}/v1/chat/completions -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" -d '${body}'

`;
}

/** Browsers accept the session cookie, which is `Secure`, over plain HTTP only from `localhost`. */
function browserUrl(url: string): string {
  return url.replace(/\/\/(127\.0\.0\.1|0\.0\.0\.0|\[::1?\])(?=:|$)/, "//localhost");
}
