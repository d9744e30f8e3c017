import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { clients } from "../../console/src/start/agent-settings.ts";
import { repositoryRoot } from "../support/import-table.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";
import type { RealClient } from "./client.ts";
import { openTerminal, type Terminal } from "./terminal.ts";

const folder = join(repositoryRoot, "node_modules/.cache/real-clients");

/** undefined if the pinned versions are installed. */
export function findWhyNoClients(): string | undefined {
  const installed = join(folder, "installed.json");
  const pinned = readFileSync(join(import.meta.dir, "versions.json"), "utf8");
  return existsSync(installed) && readFileSync(installed, "utf8") === pinned
    ? undefined
    : "The clients are not installed: run tests/clients/setup";
}

export interface Address {
  /** Where `/v1` is. */
  origin: string;
  key: string;
  model: string;
}

export interface Run {
  status: number | null;
  seconds: number;
  /** Both outputs, without colours. */
  screen: string;
}

/** A client with a home folder of its own, which has Help's settings and nothing else. */
export interface InstalledClient extends Disposable {
  run: (args: readonly string[]) => Promise<Run>;
  /** Starts it as somebody does who then types. */
  open: (args: readonly string[]) => Terminal;
  /** Hosts beyond the loopback interface that it wanted to connect to. */
  elsewhere: () => readonly string[];
}

const deadlineMs = 1_200_000;

/** @param change what stands in the file instead of Help's text */
export async function installClient(
  client: RealClient,
  address: Address,
  change = (text: string): string => text,
): Promise<InstalledClient> {
  const home = createTempFolder();
  const text = change(settingsOf(client, address));
  const file = home.file(client.file ?? "settings.sh");
  mkdirSync(dirname(file), { recursive: true });
  await Bun.write(file, `${text}\n`);
  // Where a script finds its packages.
  symlinkSync(join(folder, "node_modules"), home.file("node_modules"));
  const work = home.file("work");
  mkdirSync(work);
  const outside = startOutside();
  const env = { ...environmentOf(home, outside.url), ...client.environment?.(address.key) };
  const command = commandOf(client);
  return {
    elsewhere: () => [...outside.hosts(), ...(client.unseenHosts ?? [])],
    async run(args) {
      const begun = performance.now();
      const child = Bun.spawn([...command, ...args], {
        cwd: work,
        env,
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
        timeout: deadlineMs,
        killSignal: "SIGKILL",
      });
      const outputs = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
      await child.exited;
      const screen = Bun.stripANSI(outputs.join("\n")).replaceAll("\r", "");
      return { status: child.exitCode, seconds: (performance.now() - begun) / 1000, screen };
    },
    open: (args) => openTerminal([...command, ...args], { cwd: work, env, socket: home.file("terminal") }),
    [Symbol.dispose]() {
      outside.stop();
      endDaemons(home.path);
      home.remove();
    },
  };
}

/** Codex and Cline leave processes in the background, which would stay for ever. */
function endDaemons(home: string): void {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
      if (environment.includes(`HOME=${home}`)) process.kill(Number(pid), "SIGKILL");
    } catch {
      // It has ended, or is another user's.
    }
  }
}

function commandOf({ id, file, binary, isServer }: RealClient): string[] {
  const program = join(folder, binary);
  const whole = isServer === true ? [process.execPath, join(import.meta.dir, "ask-server.ts"), id, program] : [program];
  return file === undefined ? ["bash", "-c", `set -a; . ../settings.sh; exec "$0" "$@"`, ...whole] : whole;
}

function settingsOf({ id, label, settings }: RealClient, address: Address): string {
  const values = { ...address, contextTokens: 202_752, outputTokens: 16_384 };
  const text = settings?.(values) ?? clients(values).find((client) => client.id === id)?.text;
  if (text === undefined) throw new Error(`Help has no settings of ${label}`);
  return text;
}

/** Without the developer's own settings and keys. What leaves the machine has to ask the proxy, which refuses. */
function environmentOf({ path }: TempFolder, outside: string): Record<string, string> {
  const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [name, name.toLowerCase()]);
  return {
    PATH: `${join(folder, "node_modules/.bin")}:${process.env["PATH"] ?? ""}`,
    HOME: path,
    TERM: "xterm",
    NO_PROXY: "127.0.0.1",
    no_proxy: "127.0.0.1",
    ...Object.fromEntries(names.map((name) => [name, outside])),
  };
}

/** A proxy for HTTP that notes where clients want to go, and lets nothing out. */
function startOutside() {
  const hosts = new Set<string>();
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, bytes) {
        const [, host] = /^[A-Z]+ (?:http:\/\/)?([^\s/]+)/.exec(bytes.toString()) ?? [];
        if (host !== undefined) hosts.add(host.startsWith("registry.") ? "npm’s registry" : host.replace(/:443$/, ""));
        socket.end("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
      },
    },
  });
  return {
    url: `http://127.0.0.1:${listener.port}`,
    hosts: (): string[] => [...hosts].toSorted(),
    stop: (): void => listener.stop(true),
  };
}
