import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { clients } from "../../console/src/start/agent-settings.ts";
import { repositoryRoot } from "../support/import-table.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";
import versions from "./versions.json" with { type: "json" };

/** A coding agent, as Help sets it up. */
export interface RealClient {
  /** Of Help's settings, and of the installed package. */
  id: keyof typeof versions;
  label: string;
  version: string;
  /** How its User-Agent begins. */
  program: string;
  /** Below the home folder: where Help's text says that the file belongs. */
  file: string;
  binary: string;
  /** Asks for one answer and exits. */
  ask: (prompt: string) => string[];
  /** The same in the conversation before; only of those whose conversations are recorded. */
  goOn?: (prompt: string) => string[];
  /** What a user sets beside the file. */
  environment?: (key: string) => Readonly<Record<string, string>>;
  /** Hosts that it asks directly, whatever proxy is set. */
  unseenHosts?: readonly string[];
}

const folder = join(repositoryRoot, "node_modules/.cache/real-clients");

export const realClients: readonly RealClient[] = [
  {
    id: "claude-code",
    label: "Claude Code",
    version: versions["claude-code"],
    program: "claude-cli/",
    file: ".claude/settings.json",
    binary: "node_modules/claude-code/claude",
    ask: (prompt) => ["-p", prompt],
    goOn: (prompt) => ["-p", "--continue", prompt],
  },
  {
    id: "codex",
    label: "Codex",
    version: versions.codex,
    program: "codex_exec/",
    file: ".codex/config.toml",
    binary: `node_modules/codex/vendor/${process.arch === "arm64" ? "aarch64" : "x86_64"}-unknown-linux-musl/bin/codex`,
    ask: (prompt) => ["exec", "--skip-git-repo-check", prompt],
    goOn: (prompt) => ["exec", "resume", "--last", "--skip-git-repo-check", prompt],
    environment: (key) => ({ TOLLGATE_API_KEY: key }),
  },
  {
    id: "opencode",
    label: "opencode",
    version: versions.opencode,
    program: "opencode/",
    file: ".config/opencode/opencode.json",
    binary: "node_modules/opencode/bin/opencode",
    ask: (prompt) => ["run", prompt],
    goOn: (prompt) => ["run", "--continue", prompt],
    // Its list of models, which no setting of the file turns off; and it waits for packages that it cannot get.
    environment: () => ({ OPENCODE_DISABLE_MODELS_FETCH: "1", npm_config_fetch_retries: "0" }),
  },
  {
    id: "aider",
    label: "aider",
    version: versions.aider,
    // The SDK of OpenAI, inside LiteLLM.
    program: "OpenAI/",
    file: ".aider.conf.yml",
    binary: "aider/bin/aider",
    ask: (prompt) => ["--no-git", "--yes-always", "--message", prompt],
    // It breaks lines there.
    environment: () => ({ COLUMNS: "400" }),
  },
  {
    id: "continue",
    label: "Continue",
    version: versions.continue,
    // The minified name of a class in its copy of OpenAI's SDK.
    program: "ls/",
    file: ".continue/config.yaml",
    binary: "node_modules/@continuedev/cli/dist/cn.js",
    ask: (prompt) => ["-p", prompt],
    // For its newest version.
    unseenHosts: ["api.continue.dev"],
  },
];

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
  /** Hosts beyond the loopback interface that it wanted to connect to. */
  elsewhere: () => readonly string[];
}

const deadlineMs = 600_000;

/** @param change what stands in the file instead of Help's text */
export async function installClient(
  client: RealClient,
  address: Address,
  change = (text: string): string => text,
): Promise<InstalledClient> {
  const home = createTempFolder();
  const settings = clients({ ...address, contextTokens: 202_752, outputTokens: 16_384 });
  const text = settings.find(({ id }) => id === client.id)?.text;
  if (text === undefined) throw new Error(`Help has no settings of ${client.label}`);
  const file = home.file(client.file);
  mkdirSync(dirname(file), { recursive: true });
  await Bun.write(file, `${change(text)}\n`);
  const work = home.file("work");
  mkdirSync(work);
  const outside = startOutside();
  const env = { ...environmentOf(home, outside.url), ...client.environment?.(address.key) };
  return {
    elsewhere: () => [...outside.hosts(), ...(client.unseenHosts ?? [])],
    async run(args) {
      const begun = performance.now();
      const child = Bun.spawn([join(folder, client.binary), ...args], {
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
    [Symbol.dispose]() {
      outside.stop();
      home.remove();
    },
  };
}

/** Without the developer's own settings and keys. What leaves the machine has to ask the proxy, which refuses. */
function environmentOf({ path }: TempFolder, outside: string): Record<string, string> {
  const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [name, name.toLowerCase()]);
  return {
    PATH: process.env["PATH"] ?? "",
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
