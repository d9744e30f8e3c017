import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AdminClient, logIn } from "../support/admin-client.ts";
import { findFreePort } from "../support/free-port.ts";
import { nginxConfiguration } from "./nginx.ts";
import { loadCore, type PinnedProcess, proxyCore, startPinned, untilAnswers } from "./processes.ts";

/** Something that answers `/v1` in front of the backend, or the backend itself. */
export interface Contestant {
  name: string;
  port: number;
  /** Header lines that it needs of each request. */
  headers: readonly string[];
  process: PinnedProcess;
  /** The console's side, where there is one. */
  admin?: AdminClient;
}

export interface Stage {
  /** For everything that is written. */
  folder: string;
  /** What the load presents. */
  key: string;
  backendPort: number;
}

export const here = import.meta.dir;
const root = join(here, "../..");
const password = "correct horse battery staple";

export type Start = (stage: Stage) => Promise<Contestant>;

export async function startBackend(folder: string, rate: number): Promise<Contestant> {
  const port = findFreePort();
  const process = startPinned(
    [
      globalThis.process.execPath,
      join(here, "simulator.ts"),
      "--port",
      String(port),
      "--rate",
      String(rate),
      "--tokens",
      "16",
    ],
    { core: loadCore, logFile: join(folder, `backend-${port}.log`) },
  );
  await untilAnswers(`http://127.0.0.1:${port}/v1/models`);
  return { name: "direct", port, headers: [], process };
}

/** The program as it is run in earnest, built from this tree, and one active key. */
export const startTollgate: Start = async ({ folder, key, backendPort }) => {
  const port = findFreePort();
  const pinned = startPinned([process.env["TOLLGATE_BINARY"] ?? build(), "serve"], {
    core: proxyCore,
    logFile: join(folder, `tollgate-${port}.log`),
    env: {
      PORT: String(port),
      DATA_DIR: join(folder, `tollgate-${port}`),
      PROXY_UPSTREAM_URL: `http://127.0.0.1:${backendPort}`,
      ADMIN_PASSWORD: password,
    },
  });
  await untilAnswers(`http://127.0.0.1:${port}/healthz`);
  const admin = await logIn(`http://127.0.0.1:${port}`, "admin", password);
  await admin.createKey("bench", key);
  return { name: "Tollgate", port, headers: [], process: pinned, admin };
};

function build(): string {
  const built = Bun.spawnSync([join(root, ".ci/build")], { cwd: root, stdout: "ignore", stderr: "pipe" });
  if (!built.success) throw new Error(`The program could not be built: ${built.stderr.toString()}`);
  return join(root, "dist/tollgate");
}

/** nginx, with everything off that costs: what a proxy costs that does nothing else. */
export const startNginx: Start = (stage) => startNginxAs("nginx", stage, false);

/** nginx that lets in whom a map of keys names, and writes an access log. */
export const startNginxWithKeys: Start = (stage) => startNginxAs("nginx, key map", stage, true);

async function startNginxAs(name: string, { folder, key, backendPort }: Stage, governed: boolean): Promise<Contestant> {
  const port = findFreePort();
  const prefix = join(folder, `nginx-${port}`);
  mkdirSync(prefix);
  chmodSync(prefix, 0o755);
  const file = join(prefix, "nginx.conf");
  writeFileSync(file, nginxConfiguration({ prefix, port, backendPort, keys: governed ? [key] : undefined }));
  const pinned = startPinned([nginxProgram, "-p", prefix, "-c", file, "-e", join(prefix, "error.log")], {
    core: proxyCore,
    logFile: join(folder, `nginx-${port}.log`),
  });
  await untilAnswers(`http://127.0.0.1:${port}/v1/models`);
  return { name, port, headers: [], process: pinned };
}

export const nginxProgram = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"].find(existsSync) ?? "nginx";

/** @param entry its `build/start-server.js` */
export const startPortkey =
  (entry: string): Start =>
  async ({ folder, backendPort }) => {
    const port = findFreePort();
    const pinned = startPinned(["node", entry, `--port=${port}`, "--headless"], {
      core: proxyCore,
      logFile: join(folder, `portkey-${port}.log`),
    });
    await untilAnswers(`http://127.0.0.1:${port}/`);
    const headers = ["x-portkey-provider: openai", `x-portkey-custom-host: http://127.0.0.1:${backendPort}/v1`];
    return { name: "Portkey", port, headers, process: pinned };
  };

/** What Bun itself costs: `hello` without a backend, `passthrough` with one and nothing more, `transform` between streams. */
export const startFloor =
  (kind: "hello" | "passthrough" | "transform"): Start =>
  async ({ folder, backendPort }) => {
    const port = findFreePort();
    const command = [process.execPath, join(here, "floor.ts"), kind, String(port), `http://127.0.0.1:${backendPort}`];
    const pinned = startPinned(command, {
      core: proxyCore,
      logFile: join(folder, `floor-${port}.log`),
      env: { BUN_CONFIG_MAX_HTTP_REQUESTS: "65535" },
    });
    await untilAnswers(`http://127.0.0.1:${port}/v1/models`);
    return { name: `Bun ${kind}`, port, headers: [], process: pinned };
  };
