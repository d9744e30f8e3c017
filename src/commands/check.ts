import { existsSync, readFileSync, statSync } from "node:fs";
import type { Config } from "../config/config.ts";
import {
  checkAddress,
  checkBackend,
  checkCatalog,
  checkCertificate,
  checkClock,
  checkDatabase,
  checkDescriptors,
  checkDisk,
  checkProvider,
  type Finding,
  findStates,
} from "./checks.ts";
import { CommandError, type CommandIo, readArguments } from "./command.ts";
import { envFileHelp, envFileOption, withServiceSettings } from "./env-file.ts";
import { findMisspeltSettings } from "./misspelt-settings.ts";
import { settingsOf } from "./settings.ts";
import { causeOf } from "../proxy/upstream/abort-reason.ts";
import { databaseFile } from "../store/sqlite/open.ts";
import { socketPathOf } from "../runtime/unix-socket.ts";

export const summary = "check the settings, the database, the host and the backend";

export const chapter = "Backup and upgrade";

export const help = `tollgate check [--quick] [--env-file FILE]

Checks what a server needs, with the settings of \`tollgate serve\`, and prints one line for each:

  configuration   every setting is allowed, and none looks misspelt
  certificate     TLS_CERT and TLS_KEY can be used, and do not end within 14 days
  address         a server could listen, or does so already
  database        intact, writable within 5 seconds, and not of a newer version; reads the whole file
  state           what the servers on this database say is wrong, and what mends it; a line for each
  disk            free space in DATA_DIR
  descriptors     how many files and connections may be open
  models          MODELS_FILE can be used; status 2, and a line for each fault, if not
  backend         responds, and its engine knows what MODELS_FILE says of it; each has a line
  sign-in         the provider of OpenID Connect responds; its redirect URI, and what it lacks
  clock           not behind the newest request in the database, nor 60 s off from the backend

It changes nothing but the row that /readyz writes too, and also works while a server runs.

  --quick            only request /healthz of the server with these settings, for a health check
${envFileHelp}

Exit status: 0 if no line says failed; 1 if one does; 2 for wrong usage or a wrong setting.
`;

export async function run(args: string[], io: CommandIo): Promise<number> {
  const options = { quick: { type: "boolean", default: false }, ...envFileOption } as const;
  const { quick, "env-file": envFile } = readArguments("check", args, options).values;
  const service = withServiceSettings(io, envFile);
  const config = settingsOf(service);
  return await io.endAtSignals(() => (quick ? checkQuickly(config.listen, service) : checkAll(config, service)));
}

async function checkQuickly(listen: Config["listen"], io: CommandIo): Promise<number> {
  const { adminPort, port } = listen;
  if ((adminPort ?? port) === 0 && socketPathOf(listen.adminHost) === undefined) {
    const variable = adminPort === undefined ? "PORT" : "ADMIN_PORT";
    throw new CommandError(`${variable}: 0 lets the system choose the port, so check --quick knows none to ask`, 2);
  }
  const problem = await requestHealth(listen);
  if (problem !== undefined) throw new CommandError(`check: ${problem}`);
  io.stdout.write("ok\n");
  return 0;
}

async function checkAll(config: Config, io: CommandIo): Promise<number> {
  const findings: Finding[] = [];
  const report = <F extends Finding>(name: string, finding: F): F => {
    findings.push(finding);
    io.stdout.write(`${finding.state.padEnd(7)}  ${name.padEnd(13)}  ${finding.text}\n`);
    return finding;
  };
  const catalog = await checkCatalog(config, io.env);
  report("configuration", checkConfiguration(io));
  if (catalog.seen.file !== undefined) report("models", catalog);
  const certificate = await checkCertificate(config, Date.now());
  if (certificate !== undefined) report("certificate", certificate);
  const isServed = (await requestHealth(config.listen)) === undefined;
  report("address", await checkAddress(config, certificate?.seen, isServed));
  const { seen: database } = report("database", await withProgress(io.stderr, config.storage, checkDatabase(config)));
  for (const state of database === undefined ? [] : findStates(database, Date.now())) report("state", state);
  report("disk", await checkDisk(config.storage));
  report("descriptors", checkDescriptors());
  const { closedPaths } = config.proxy;
  const backends = await Promise.all(
    catalog.seen.backends.map((backend) => checkBackend(backend, catalog.seen, closedPaths)),
  );
  for (const finding of backends) report("backend", finding);
  if (config.signIn !== undefined) report("sign-in", await checkProvider(config.signIn));
  const backend = backends.find(({ seen }) => seen !== undefined)?.seen;
  report("clock", checkClock({ now: Date.now(), database, backend }));
  return findings.some(({ state }) => state === "failed") ? 1 : 0;
}

/** Tells every five seconds how much of the file was read: of a large database that takes minutes. */
export async function withProgress<T>(
  stderr: CommandIo["stderr"],
  { dataDir, databaseUrl }: Pick<Config["storage"], "dataDir" | "databaseUrl">,
  work: Promise<T>,
  everyMs = 5000,
): Promise<T> {
  const size = databaseUrl === undefined && statSync(databaseFile(dataDir), { throwIfNoEntry: false })?.size;
  const before = bytesRead();
  const tell = (): void => {
    const share = typeof size === "number" ? Math.min(0.99, (bytesRead() - before) / size) : NaN;
    if (share >= 0) stderr.write(`tollgate: database: ${Math.floor(share * 100)} % read\n`);
  };
  const timer = setInterval(tell, everyMs);
  return await work.finally(() => clearInterval(timer));
}

/** By this process; NaN where the system does not tell (only Linux does). */
function bytesRead(): number {
  const file = "/proc/self/io";
  return existsSync(file) ? Number(/^rchar: (\d+)/.exec(readFileSync(file, "utf8"))?.[1]) : NaN;
}

function checkConfiguration({ env }: CommandIo): Finding {
  const misspelt = findMisspeltSettings(env).map(({ given, meant }) => `${given} is unknown; is it ${meant}?`);
  return misspelt.length === 0 ? { state: "ok", text: "" } : { state: "warning", text: misspelt.join("; ") };
}

const healthTimeoutMs = 3000;

/** Requests `/healthz` of the server that runs with these settings on this host. @returns what is wrong, if anything is */
async function requestHealth(listen: Config["listen"]): Promise<string | undefined> {
  const unix = socketPathOf(listen.adminHost);
  const scheme = listen.tls === undefined ? "http" : "https";
  const origin = `${scheme}://${reachable(listen.adminHost)}:${listen.adminPort ?? listen.port}`;
  const url = `${unix === undefined ? origin : "http://localhost"}/healthz`;
  const name = unix === undefined ? url : listen.adminHost;
  try {
    const response = await fetch(url, {
      signal: AbortSignal.timeout(healthTimeoutMs),
      proxy: false,
      // The certificate is made for the name that clients use, not for this address.
      tls: { rejectUnauthorized: false },
      ...(unix === undefined ? {} : { unix }),
    });
    return response.ok ? undefined : `${name} responds ${response.status}`;
  } catch (error) {
    return `${name} does not respond (${causeOf(error)})`;
  }
}

/** An address that a server can listen on may be none that a client can connect to. */
function reachable(host: string): string {
  const address = host.replace(/^\[|\]$/g, "");
  if (address === "0.0.0.0") return "127.0.0.1";
  if (address === "::") return "[::1]";
  return address.includes(":") ? `[${address}]` : address;
}
