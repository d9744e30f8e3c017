import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AdminClient, logIn } from "../support/admin-client.ts";
import { findFreePort } from "../support/free-port.ts";
import { nginxConfiguration } from "./nginx.ts";
import { loadCore, type PinnedProcess, proxyCore, startPinned, untilResponds } from "./processes.ts";

/** A measured program: a proxy in front of the backend, or the backend itself. */
export interface Target {
  name: string;
  port: number;
  /** Header lines that it needs in each request. */
  headers: readonly string[];
  process: PinnedProcess;
  /** Its API key, if it accepts only keys of its own. */
  key?: string;
  /** A console session, for Tollgate. */
  admin?: AdminClient;
}

export interface Bench {
  /** Temporary folder for all files. */
  folder: string;
  /** The API key of the load generator. */
  key: string;
  backendPort: number;
}

export const benchFolder = import.meta.dir;
const root = join(benchFolder, "../..");
const password = "correct horse battery staple";

export type StartTarget = (bench: Bench) => Promise<Target>;

export async function startBackend(folder: string, rate: number): Promise<Target> {
  const port = findFreePort();
  const process = startPinned(
    [
      globalThis.process.execPath,
      join(benchFolder, "simulator.ts"),
      "--port",
      String(port),
      "--rate",
      String(rate),
      "--tokens",
      "16",
    ],
    { core: loadCore, logFile: join(folder, `backend-${port}.log`) },
  );
  await untilResponds(`http://127.0.0.1:${port}/v1/models`);
  return { name: "direct", port, headers: [], process };
}

/** The compiled program, built from this tree, with one key. */
export const startTollgate: StartTarget = (bench) => startTollgateWith(bench, {});

/** @param settings in addition to those that it needs; `MODELS_FILE` takes the place of the backend's address */
export async function startTollgateWith(
  { folder, key, backendPort }: Bench,
  settings: Readonly<Record<string, string>>,
): Promise<Target & Required<Pick<Target, "admin">>> {
  const port = findFreePort();
  const pinned = startPinned([findProgram(), "serve"], {
    core: proxyCore,
    logFile: join(folder, `tollgate-${port}.log`),
    env: {
      PORT: String(port),
      DATA_DIR: join(folder, `tollgate-${port}`),
      ADMIN_PASSWORD: password,
      ...(settings["MODELS_FILE"] === undefined && { PROXY_UPSTREAM_URL: `http://127.0.0.1:${backendPort}` }),
      ...settings,
    },
  });
  await untilResponds(`http://127.0.0.1:${port}/healthz`);
  const admin = await logIn(`http://127.0.0.1:${port}`, "admin", password);
  await admin.createKey("bench", { key });
  return { name: "Tollgate", port, headers: [], process: pinned, admin };
}

let built: string | undefined;
/** Built once for a run of the bench, unless `TOLLGATE_BINARY` names one. */
export const findProgram = (): string => (built ??= process.env["TOLLGATE_BINARY"] ?? build());

function build(): string {
  const ended = Bun.spawnSync([join(root, ".ci/build")], { cwd: root, stdout: "ignore", stderr: "pipe" });
  if (!ended.success) throw new Error(`The build failed: ${ended.stderr.toString()}`);
  return join(root, "dist/tollgate");
}

/** nginx without an access log: the cost of a plain proxy. */
export const startNginx: StartTarget = (bench) => startNginxAs("nginx", bench, false);

/** nginx that checks keys against a map and writes an access log. */
export const startNginxWithKeys: StartTarget = (bench) => startNginxAs("nginx, key map", bench, true);

async function startNginxAs(name: string, { folder, key, backendPort }: Bench, hasKeys: boolean): Promise<Target> {
  const port = findFreePort();
  const prefix = join(folder, `nginx-${port}`);
  mkdirSync(prefix);
  chmodSync(prefix, 0o755);
  const file = join(prefix, "nginx.conf");
  writeFileSync(file, nginxConfiguration({ prefix, port, backendPort, keys: hasKeys ? [key] : undefined }));
  const pinned = startPinned([nginxProgram, "-p", prefix, "-c", file, "-e", join(prefix, "error.log")], {
    core: proxyCore,
    logFile: join(folder, `nginx-${port}.log`),
  });
  await untilResponds(`http://127.0.0.1:${port}/v1/models`);
  return { name, port, headers: [], process: pinned };
}

export const nginxProgram = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"].find(existsSync) ?? "nginx";

/** The cost of Bun itself; see `bare-server.ts`. */
export const startBareServer =
  (kind: "hello" | "passthrough" | "transform"): StartTarget =>
  async ({ folder, backendPort }) => {
    const port = findFreePort();
    const command = [
      process.execPath,
      join(benchFolder, "bare-server.ts"),
      kind,
      String(port),
      `http://127.0.0.1:${backendPort}`,
    ];
    const pinned = startPinned(command, {
      core: proxyCore,
      logFile: join(folder, `bun-${port}.log`),
      env: { BUN_CONFIG_MAX_HTTP_REQUESTS: "65535" },
    });
    await untilResponds(`http://127.0.0.1:${port}/v1/models`);
    return { name: `Bun ${kind}`, port, headers: [], process: pinned };
  };
