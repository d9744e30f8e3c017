import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { logIn } from "../../support/admin-client.ts";
import { findFreePort } from "../../support/free-port.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { startProgram } from "../../support/program.ts";
import { cpuUs } from "../processes.ts";
import { nginxProgram } from "../targets.ts";

/** What stands in front of the engines. */
export interface LiveRouter {
  url: string;
  key: string;
  /** So far, in milliseconds. */
  cpuMs: () => number;
  stop: () => Promise<unknown>;
}

/** @param engines their origins. @param folder for files of its own */
export type StartRouter = (engines: readonly string[], folder: string) => Promise<LiveRouter>;

/** Programs that no registry of ours has: `vllm-router` and `sglang-router`, as PyPI's wheels install them. */
const [vllmRouter, sglangRouter] = [process.env["BENCH_VLLM_ROUTER"], process.env["BENCH_SGLANG_ROUTER"]];

/** Those that are installed, by the name of the rule. */
export const routers: Readonly<Record<string, StartRouter>> = {
  Tollgate: startTollgate,
  ...(vllmRouter !== undefined && {
    "vllm-router, consistent_hash": startOther(vllmRouter, [], "consistent_hash"),
    "vllm-router, cache_aware": startOther(vllmRouter, [], "cache_aware"),
  }),
  ...(sglangRouter !== undefined && {
    "sglang-router, cache_aware": startOther(sglangRouter, ["launch"], "cache_aware"),
  }),
  "nginx, hash": startNginx,
};

async function startTollgate(engines: readonly string[], folder: string): Promise<LiveRouter> {
  const file = join(folder, "models.yaml");
  const backends = engines.map((url, index) => `  e${index}: { url: "${url}" }`).join("\n");
  const names = engines.map((_, index) => `e${index}`).join(", ");
  writeFileSync(file, `backends:\n${backends}\nmodels:\n  m: { backends: [${names}] }\n`);
  const password = "correct horse battery staple";
  const environment = {
    MODELS_FILE: file,
    ADMIN_PASSWORD: password,
    LOG_LEVEL: "error",
    MAX_CONTEXT_TOKENS: "1000000",
  };
  const program = await startProgram(environment);
  const { key } = await (await logIn(program.adminUrl, "admin", password)).createKey("bench");
  return { url: program.url, key, cpuMs: program.cpuMs, stop: () => program.stop() };
}

function startOther(program: string, verb: readonly string[], policy: string): StartRouter {
  return async (engines, folder) => {
    const [port, metricsPort] = [findFreePort(), findFreePort()];
    const own = ["--host", "127.0.0.1", "--port", String(port), "--policy", policy];
    const metrics = ["--prometheus-host", "127.0.0.1", "--prometheus-port", String(metricsPort)];
    const checks = ["--worker-startup-check-interval", "1"];
    return start([program, ...verb, ...own, ...metrics, ...checks, "--worker-urls", ...engines], port, folder);
  };
}

async function startNginx(engines: readonly string[], folder: string): Promise<LiveRouter> {
  const port = findFreePort();
  const prefix = join(folder, "nginx");
  mkdirSync(prefix);
  chmodSync(prefix, 0o755);
  const file = join(prefix, "nginx.conf");
  writeFileSync(file, nginxHash({ prefix, port, engines }));
  return start([nginxProgram, "-p", prefix, "-c", file, "-e", join(prefix, "error.log")], port, folder);
}

const nginxHash = ({ prefix, port, engines }: { prefix: string; port: number; engines: readonly string[] }): string => `
daemon off;
worker_processes 1;
pid ${prefix}/nginx.pid;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path ${prefix}/body;
  proxy_temp_path ${prefix}/proxy;
  fastcgi_temp_path ${prefix}/fastcgi;
  uwsgi_temp_path ${prefix}/uwsgi;
  scgi_temp_path ${prefix}/scgi;
  client_max_body_size 0;
  client_body_buffer_size 2m;
  upstream engines {
    hash $http_x_session_id consistent;
${engines.map((url) => `    server ${new URL(url).host};`).join("\n")}
    keepalive 256;
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://engines;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 1200s;
    }
  }
}
`;

async function start(command: readonly string[], port: number, folder: string): Promise<LiveRouter> {
  const child = Bun.spawn([...command], {
    env: { PATH: process.env["PATH"] ?? "", HOME: folder },
    stdin: "ignore",
    stdout: Bun.file(join(folder, "router.log")),
    stderr: Bun.file(join(folder, "router.err")),
  });
  const kill = (): void => child.kill("SIGKILL");
  process.on("exit", kill);
  const url = `http://127.0.0.1:${port}`;
  await pollUntil(async () => (await fetch(`${url}/v1/models`)).ok);
  return {
    url,
    key: "any",
    cpuMs: () => cpuUs(child.pid) / 1000,
    async stop() {
      child.kill("SIGTERM");
      await Promise.race([child.exited, Bun.sleep(3000)]);
      kill();
      process.off("exit", kill);
      await child.exited;
    },
  };
}
