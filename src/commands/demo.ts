import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { generatePassword } from "../admin/password.ts";
import type { Environment } from "../config.ts";
import { demoModel } from "../demo/client-behaviour.ts";
import { seed, type SeededDemo } from "../demo/seed.ts";
import { runSimulatedClient } from "../demo/simulated-clients.ts";
import { runSimulatedGpuAgent } from "../demo/simulated-gpu-agent.ts";
import { ListenError } from "../runtime/listen.ts";
import { createLog } from "../log/log.ts";
import type { Server } from "../server.ts";
import { type Simulator, startSimulator } from "../simulator/simulator.ts";
import { CommandError, type CommandIo } from "./command.ts";
import { startOrExplain, untilStopped } from "./serve.ts";
import { settingsOf } from "./settings.ts";

export const summary = "show everything with a simulated model, clients and GPUs";

export const help = `tollgate demo

Serves as \`tollgate serve\` does, in front of a simulated model, with simulated clients that talk, a
simulated GPU host and 30 days of invented history. Prints the console's address, the password, an
API key, and a curl line that streams a completion. All data is in a temporary folder that is removed
when the demo ends.

  HOST, PORT   where to listen (127.0.0.1, 8080; any free port where 8080 is taken)

What else \`tollgate serve\` reads from the environment holds here too, apart from the backend, the
model's names, the place of the data, the key that signs sessions and the number of processes.
`;

/** Frames, and so tokens, of each simulated answer. */
const tokensPerSecond = 30;
/** Answers at once that keep the simulated cards fully busy. */
const busyAnswers = 9;

export async function run(args: string[], io: CommandIo): Promise<number> {
  refuseArguments(args);
  const dataDir = mkdtempSync(join(tmpdir(), "tollgate-demo-"));
  const removeData = (): void => rmSync(dataDir, { recursive: true, force: true });
  // A second signal ends the process without coming back here.
  process.on("exit", removeData);
  const simulator = startSimulator({ models: [demoModel], framesPerSecond: tokensPerSecond, recordRequests: 0 });
  try {
    return await show(dataDir, simulator, io);
  } finally {
    simulator.stop();
    process.off("exit", removeData);
    removeData();
  }
}

function refuseArguments(args: string[]): void {
  try {
    parseArgs({ args, options: {}, strict: true });
  } catch {
    throw new CommandError("demo takes no arguments; see tollgate demo --help", 2);
  }
}

async function show(dataDir: string, simulator: Simulator, io: CommandIo): Promise<number> {
  const environment = environmentOf(io.env, dataDir, simulator.url);
  const config = settingsOf(io, environment);
  const log = createLog({ ...config.log, clock: Date.now, write: (line) => io.stdout.write(line) });
  const seeded = await seed({ dataDir, clock: Date.now, log });
  const server = await startOnSomePort(environment, io);
  const ending = new AbortController();
  const actors = play(seeded, server, simulator, ending.signal);
  io.stdout.write(
    welcome({ server, seeded, dataDir, username: config.admin.username, password: config.admin.password }),
  );
  await untilStopped(io.signal);
  ending.abort();
  await actors;
  await server.stop();
  return 0;
}

function environmentOf(env: Environment, dataDir: string, upstream: string): Environment {
  const given = (name: string, otherwise: string): string => env[name] || otherwise;
  return {
    ...env,
    PROXY_UPSTREAM_URL: upstream,
    PROXY_UPSTREAM_API_KEY: "",
    PROXY_ALIAS_MODEL: demoModel,
    PROXY_FAMILY_MODEL: demoModel,
    // So that the pasted line, which does not ask for usage, is counted in tokens all the same.
    PROXY_FORCE_STREAM_USAGE: given("PROXY_FORCE_STREAM_USAGE", "final"),
    DATA_DIR: dataDir,
    DATABASE_URL: "",
    SECRET_KEY: "",
    PROCESSES: "",
    ADMIN_PASSWORD: given("ADMIN_PASSWORD", generatePassword()),
    // What is said at the start should still be on the screen later.
    LOG_LEVEL: given("LOG_LEVEL", "warn"),
    SHUTDOWN_GRACE: given("SHUTDOWN_GRACE", "2"),
  };
}

/** A visitor who named no port does not mind which one it is. */
async function startOnSomePort(environment: Environment, io: CommandIo): Promise<Server> {
  try {
    return await startOrExplain(settingsOf(io, environment), io);
  } catch (error) {
    const taken = error instanceof CommandError && error.cause instanceof ListenError;
    if (!taken || (environment["PORT"] ?? "") !== "") throw error;
    return startOrExplain(settingsOf(io, { ...environment, PORT: "0" }), io);
  }
}

async function play(seeded: SeededDemo, server: Server, simulator: Simulator, signal: AbortSignal): Promise<void> {
  const clients = seeded.clients.map(({ persona: { behaviour }, key }) =>
    behaviour === undefined ? undefined : runSimulatedClient({ url: server.url, key, behaviour, signal }),
  );
  const load = (): number => Math.min(1, simulator.stats().open / busyAnswers);
  await Promise.all([...clients, runSimulatedGpuAgent({ url: server.adminUrl, key: seeded.gpuHostKey, load, signal })]);
}

interface Welcome {
  server: Server;
  seeded: SeededDemo;
  dataDir: string;
  username: string;
  password: string | undefined;
}

function welcome({ server, seeded, dataDir, username, password }: Welcome): string {
  const body = JSON.stringify({ model: demoModel, stream: true, messages: [{ role: "user", content: "Hello!" }] });
  return `
  This is a demo: the model, its clients, the GPUs and 30 days of history are made up.
  All data is in ${dataDir} and is removed when the demo ends.

    Console    ${forBrowser(server.adminUrl)}
    Username   ${username}
    Password   ${password}
    API key    ${seeded.key}

  Paste this into another terminal to stream a completion:

curl -N ${forBrowser(server.url)}/v1/chat/completions -H "Authorization: Bearer ${seeded.key}" -H "Content-Type: application/json" -d '${body}'

  Ctrl-C ends the demo.

`;
}

/** Browsers take the session's cookie, which is for HTTPS, from `localhost` too, but from no other plain address. */
function forBrowser(url: string): string {
  return url.replace(/\/\/(127\.0\.0\.1|0\.0\.0\.0|\[::1?\])(?=:|$)/, "//localhost");
}
