import { existsSync, mkdirSync } from "node:fs";
import { findFreePort } from "./free-port.ts";
import { createTempFolder, type TempFolder } from "./temp-folder.ts";
import { pollUntil } from "./poll-until.ts";

/** A web server in front of one or more Tollgate instances, on loopback without TLS. */
export interface Balancer extends AsyncDisposable {
  url: string;
}

export interface BalancerProgram {
  name: string;
  /** Why the program cannot be used; undefined if it is installed. */
  whyMissing: string | undefined;
  /** Empty if it is not installed. */
  version: string;
  /** @param block configuration from the manual; its `/healthz` must work through the balancer */
  start(block: string): Promise<Balancer>;
}

const nginxFile = ["/usr/sbin/nginx", "/usr/bin/nginx"].find((file) => existsSync(file));
const caddyFile = process.env["CADDY"] || Bun.which("caddy") || undefined;

export const nginx: BalancerProgram = {
  name: "nginx",
  whyMissing: nginxFile === undefined ? "nginx is not installed: its tests are skipped" : undefined,
  version: nginxFile === undefined ? "" : versionOf([nginxFile, "-v"]),
  start: (block) =>
    startBalancer(async (folder, port) => {
      const server = block
        .replace("listen 443 ssl;", `listen 127.0.0.1:${port};`)
        .replaceAll(/^ *ssl_certificate.*\n/gm, "");
      const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map((name) => `${name}_temp_path ${folder.file(name)};`)
        .join(" ");
      mkdirSync(folder.file("logs"));
      await Bun.write(
        folder.file("nginx.conf"),
        `daemon off; master_process off; pid ${folder.file("pid")}; error_log ${folder.file("error.log")};
events {} http { access_log off; ${temporary} ${server} }`,
      );
      const log = folder.file("error.log");
      return [nginxFile ?? "", "-p", folder.path, "-e", log, "-c", folder.file("nginx.conf")];
    }),
};

export const caddy: BalancerProgram = {
  name: "Caddy",
  whyMissing:
    caddyFile === undefined ? "Caddy is not installed and CADDY is not set: its tests are skipped" : undefined,
  version: caddyFile === undefined ? "" : versionOf([caddyFile, "version"]),
  start: (block) =>
    startBalancer(async (folder, port) => {
      const site = block.replace("gate.example.com", `http://127.0.0.1:${port}`);
      await Bun.write(folder.file("Caddyfile"), `{\n\tadmin off\n}\n${site}`);
      return [caddyFile ?? "", "run", "--adapter", "caddyfile", "--config", folder.file("Caddyfile")];
    }),
};

for (const { whyMissing } of [nginx, caddy]) if (whyMissing !== undefined) process.stderr.write(`${whyMissing}\n`);

function versionOf(command: string[]): string {
  const { stdout, stderr } = Bun.spawnSync(command);
  const [, version = ""] = /(\d+(?:\.\d+)+)/.exec(Buffer.concat([stdout, stderr]).toString()) ?? [];
  return version;
}

async function startBalancer(prepare: (folder: TempFolder, port: number) => Promise<string[]>): Promise<Balancer> {
  const folder = createTempFolder();
  const port = findFreePort();
  const child = Bun.spawn(await prepare(folder, port), {
    env: { PATH: process.env["PATH"], HOME: folder.path, XDG_DATA_HOME: folder.path, XDG_CONFIG_HOME: folder.path },
    stdout: "ignore",
    stderr: Bun.file(folder.file("stderr.log")),
  });
  const kill = (): void => child.kill("SIGKILL");
  process.on("exit", kill);
  const url = `http://127.0.0.1:${port}`;
  try {
    await pollUntil(async () => child.exitCode !== null || (await fetch(`${url}/healthz`)).ok);
  } catch (error) {
    kill();
    throw error;
  }
  if (child.exitCode !== null) throw new Error(await Bun.file(folder.file("stderr.log")).text());
  return {
    url,
    async [Symbol.asyncDispose]() {
      kill();
      await child.exited;
      process.off("exit", kill);
      folder.remove();
    },
  };
}
