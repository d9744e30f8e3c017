import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findFreePort } from "../support/free-port.ts";
import { proxyCore, startPinned, untilResponds } from "./processes.ts";
import type { StartTarget } from "./targets.ts";

/** Other gateways. No package registry has them, so a variable names the program of each; one without it is omitted. */
export const peers = [
  { name: "Busbar", program: process.env["BENCH_BUSBAR"], start: startBusbar },
  { name: "GoModel", program: process.env["BENCH_GOMODEL"], start: startGoModel },
].flatMap(({ name, program, start }) => (program === undefined ? [] : [{ name, program, start: start(program) }]));

/** @returns its version, as it prints it */
export const versionOf = (program: string): string =>
  /v?(\d+\.\d+\.\d+)/.exec(Bun.spawnSync([program, "--version"]).stdout.toString())?.[1] ?? "unknown";

const adminToken = "correct-horse-battery-staple-correct-horse";

interface BusbarOptions {
  port: number;
  adminPort: number;
  signingKeyFile: string;
  /** The model that the workloads ask for. */
  model: string;
}

/** With keys, which it signs itself, and counts in memory: it has no others without a plugin (1.5.5). */
const busbarConfiguration = ({ port, adminPort, signingKeyFile, model }: BusbarOptions): string => `
listen: "127.0.0.1:${port}"
admin_listen: "127.0.0.1:${adminPort}"
identity-providers:
  admin-tokens: { module: admin-tokens, token: { env: BUSBAR_ADMIN_TOKEN } }
auth:
  chain: [keys]
  admin_auth: [admin-tokens]
  signing_key: { file: ${signingKeyFile} }
providers:
  bench: { api_key: { env: BENCH_KEY } }
models:
  ${model}: { provider: bench }
`;

function startBusbar(program: string): StartTarget {
  return async ({ folder, backendPort }) => {
    const [port, adminPort] = [findFreePort(), findFreePort()];
    const own = join(folder, `busbar-${port}`);
    mkdirSync(own);
    const [config, signingKeyFile] = [join(own, "config.yaml"), join(own, "signing.key")];
    writeFileSync(signingKeyFile, Bun.spawnSync([program, "--generate-signing-key"]).stdout);
    writeFileSync(config, busbarConfiguration({ port, adminPort, signingKeyFile, model: "m" }));
    const providers = `bench: { protocol: openai, base_url: "http://127.0.0.1:${backendPort}", error_map: {} }\n`;
    writeFileSync(join(own, "providers.yaml"), providers);
    const pinned = startPinned([program], {
      core: proxyCore,
      logFile: join(folder, `busbar-${port}.log`),
      env: { BUSBAR_CONFIG: config, BUSBAR_ADMIN_TOKEN: adminToken, BENCH_KEY: "any", RUST_LOG: "warn" },
    });
    await untilResponds(`http://127.0.0.1:${adminPort}/`);
    return { name: "Busbar", port, headers: [], process: pinned, key: await createKey(adminPort) };
  };
}

/** With a master key, and counts that it writes to SQLite every few seconds. */
function startGoModel(program: string): StartTarget {
  return async ({ folder, key, backendPort }) => {
    const port = findFreePort();
    const own = join(folder, `gomodel-${port}`);
    mkdirSync(own);
    const pinned = startPinned([program], {
      core: proxyCore,
      logFile: join(folder, `gomodel-${port}.log`),
      env: {
        PORT: String(port),
        GOMODEL_MASTER_KEY: key,
        GOMODEL_CACHE_DIR: own,
        SQLITE_PATH: join(own, "gomodel.db"),
        VLLM_BASE_URL: `http://127.0.0.1:${backendPort}/v1`,
        VLLM_MODELS: "m",
        CONFIGURED_PROVIDER_MODELS_MODE: "allowlist",
        // It refuses requests for 30 s after a few broken connections.
        CIRCUIT_BREAKER_FAILURE_THRESHOLD: "1000000",
        MODEL_LIST_URL: `http://127.0.0.1:${backendPort}/none`,
        LOG_LEVEL: "warn",
      },
    });
    await untilResponds(`http://127.0.0.1:${port}/health`);
    return { name: "GoModel", port, headers: [], process: pinned };
  };
}

async function createKey(adminPort: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/api/v1/admin/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${adminToken}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "bench" }),
  });
  const { token } = (await response.json()) as { token?: string };
  if (token === undefined) throw new Error(`Busbar creates no key: ${response.status}`);
  return token;
}
