import { beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../package.json" with { type: "json" };
import { catalogFromEnvironment } from "../src/config/catalog.ts";
import { readConfig, variableNames } from "../src/config/config.ts";
import { parseModelsFile } from "../src/config/models-file.ts";
import { startSimulator } from "./support/simulator/simulator.ts";
import { whyNoCurl } from "./support/curl.ts";
import { createGpuHost, csvOfTwo, prints } from "./gpu-agent/gpu-host.ts";
import { clients } from "../console/src/start/agent-settings.ts";
import { keyChangeRequest, keyPolicyRequest, newKeyRequest } from "../src/admin/keys/contract.ts";
import { logIn } from "./support/admin-client.ts";
import { nginx } from "./support/balancer.ts";
import { sharedPostgres, whyNoPostgres } from "./support/postgres.ts";
import { runProgram, startProgram } from "./support/program.ts";
import { repositoryRoot } from "./support/import-table.ts";
import { sampleValues } from "./support/handbook-parts.ts";
import { manual, manualBlock, manualBlocks, textOfChapter } from "./support/manual.ts";
import { createTempFolder } from "./support/temp-folder.ts";
import { pollUntil } from "./support/poll-until.ts";
import { shared } from "./support/shared.ts";

/** `NAME=value` lines. */
const assignments = (text: string): Record<string, string> =>
  Object.fromEntries([...text.matchAll(/^(?:Environment=)?([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [name, value]));

describe("the handbook's table of settings", () => {
  const rows = [...textOfChapter("settings").matchAll(/^\| `([A-Z_]+)`\s*\| (.*?)\s*\| .+ \|$/gm)].map(
    ([, name = "", cell = ""]) => [name, /^`(.+)`$/.exec(cell)?.[1]] as const,
  );

  test("lists every variable once and no other", () => {
    expect(rows.map(([name]) => name).toSorted()).toEqual(variableNames.toSorted());
  });

  test.each(rows)("has the default of %s", (name, byDefault) => {
    const config = readConfig({}, false);
    if (byDefault !== undefined) expect(readConfig({ [name]: byDefault }, false)).toEqual(config);
    else expect(withoutDefault).toContain(name);
  });

  test("omits a default only if there is none", () => {
    expect(rows.filter(([, byDefault]) => byDefault === undefined).map(([name]) => name)).toEqual(withoutDefault);
  });
});

/** What `readConfig` leaves undefined, in the table's order. The default of LOG_FORMAT depends on the terminal. */
const withoutDefault = [
  "PROXY_UPSTREAM_API_KEY",
  "PROXY_ALIAS_MODEL",
  "PROXY_FAMILY_MODEL",
  "MODELS_FILE",
  "PROXY_CORS_ORIGINS",
  "PROXY_CLOSED_PATHS",
  "PUBLIC_URL",
  "CONTACT",
  "PROXY_MAX_CONCURRENCY",
  "PROXY_MAX_PREFILL_TOKENS",
  "ADMIN_PORT",
  "ADMIN_HOST",
  "TLS_CERT",
  "TLS_KEY",
  "DATABASE_URL",
  "ADMIN_PASSWORD",
  "SECRET_KEY",
  "ADMIN_URL",
  "OIDC_ISSUER",
  "OIDC_CLIENT_ID",
  "OIDC_CLIENT_SECRET",
  "OIDC_CLIENT_SECRET_FILE",
  "OIDC_ADMIN_GROUPS",
  "OIDC_VIEWER_GROUPS",
  "METRICS_TOKEN",
  "NOTICE_URL",
  "NOTICE_SECRET",
  "BACKUP_DIR",
  "LOG_FORMAT",
];

describe("the manual's command lines", () => {
  let key: string;
  const backend = shared(() => startSimulator());
  const program = shared(() => startProgram({ ADMIN_PASSWORD: "password", PROXY_UPSTREAM_URL: backend.url }));
  beforeAll(async () => {
    ({ key } = await (await logIn(program.adminUrl, "admin", "password")).createKey("GPU host"));
  });

  /** `.ci/run` runs these scripts, and `tests/binary` runs the build. */
  const isScript = (name: string): void => expect(Object.keys(packageJson.scripts)).toContain(name);
  /** Runs the program itself. The line's files and addresses are replaced by some of this machine. */
  async function runs(
    line: string,
    replacements: Record<string, string>,
    environment: Record<string, string> = {},
    stdin = "",
  ): Promise<void> {
    using folder = createTempFolder();
    await Bun.write(folder.file("key"), key);
    let command = line.replace(/^sudo (DATA_DIR=\S+ )?tollgate /, "").replace(/^tollgate /, "");
    for (const [name, value] of Object.entries(replacements)) {
      expect(command).toContain(name);
      command = command.replace(name, value.replace("FOLDER", folder.path));
    }
    const settings = { DATA_DIR: program.dataDir, ...environment };
    const { status, stderr } = await runProgram(command.split(" "), settings, { stdin });
    expect({ line, status, stderr }).toMatchObject({ line, status: 0 });
  }

  const fileHas = async (file: string, text: string): Promise<void> =>
    expect(await Bun.file(join(repositoryRoot, file)).text()).toContain(text);
  const isReleased = (text: string) => fileHas(".ci/release", text);
  /** It begins with these lines. */
  const isInDockerfile = (line: string) => fileHas(".ci/Dockerfile", `#   ${line}\n`);

  const dockerBuild = "docker build -f .ci/Dockerfile -t tollgate .";
  const dockerRun =
    "docker run --stop-timeout 60 -p 8080:8080 -v tollgate:/data -e PROXY_UPSTREAM_URL=http://backend:8000 tollgate";
  const completion =
    manualBlocks("sh")
      .find((block) => block.startsWith("curl -N"))
      ?.trim() ?? "";
  const moveTo = "sudo tollgate move-to --url-stdin";
  /** How each line is tried. Two need systemd, and one needs the right to write to /usr/local. */
  const tried: Record<string, () => unknown> = {
    "npm run demo": () => isScript("demo"),
    "npm test": () => isScript("test"),
    "npm run setup": () => isScript("setup"),
    "npm run build": () => isScript("build"),
    "sudo install -m 755 dist/tollgate /usr/local/bin/tollgate": () =>
      expect(manual).toContain("/usr/local/bin/tollgate serve"),
    "sudo install -m 755 tollgate-linux-x64 /usr/local/bin/tollgate": () => isReleased("dist/tollgate-*"),
    "gunzip tollgate-linux-x64.gz": () => isReleased("gzip --best"),
    "sha256sum --check --ignore-missing SHA256SUMS": () => isReleased("sha256sum -- * >SHA256SUMS"),
    "sudo apt install ./tollgate_*.deb": () => isReleased("dist/tollgate_*.deb"),
    [dockerBuild]: () => isInDockerfile(dockerBuild),
    [dockerRun]: () => isInDockerfile(dockerRun),
    "tollgate serve": () => expect(program.url).toStartWith("http://127.0.0.1:"),
    "llama-server -m model.gguf --port 8000 --metrics": () =>
      expect(readConfig({}, false).upstream.baseUrl).toBe("http://127.0.0.1:8000"),
    [completion]: async () => {
      const words = [
        ["http://localhost:8080", program.url],
        ["KEY", key],
        ["MODEL", "m"],
      ] as const;
      const command = words.reduce((line, [name, value]) => line.replace(name, value), completion);
      const shell = Bun.spawn(["sh", "-c", command], { stderr: "ignore" });
      expect(await new Response(shell.stdout).text()).toContain('"usage":{');
    },
    "sudo systemctl stop tollgate": () => expect(manual).toContain("/etc/systemd/system/tollgate.service"),
    "sudo systemctl start tollgate": () => expect(manual).toContain("/etc/systemd/system/tollgate.service"),
    "sudo systemctl enable --now tollgate": () => expect(manual).toContain("/etc/systemd/system/tollgate.service"),
    "sudo journalctl -u tollgate": () => expect(manual).toContain("/etc/systemd/system/tollgate.service"),
    "tollgate push-gpu --url https://gate.example.com --key-file /etc/tollgate-gpu.key": async () => {
      await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
      const line = "tollgate push-gpu --url https://gate.example.com --key-file /etc/tollgate-gpu.key --once";
      const places = { "https://gate.example.com": program.adminUrl, "/etc/tollgate-gpu.key": "FOLDER/key" };
      await runs(line, places, host.env);
    },
    "sudo tollgate backup /var/backups/tollgate.db": () =>
      runs("sudo tollgate backup /var/backups/tollgate.db", {
        "/var/backups": "FOLDER",
      }),
    "sudo tollgate restore /var/backups/tollgate.db": async () => {
      using folder = createTempFolder();
      await runProgram(["backup", folder.file("tollgate.db")], { DATA_DIR: program.dataDir });
      const line = "sudo tollgate restore /var/backups/tollgate.db";
      await runs(line, { "/var/backups": folder.path }, { DATA_DIR: folder.file("data") });
    },
    "sudo tollgate check": async () => {
      await runs("sudo tollgate check", {}, { PORT: "0", PROXY_UPSTREAM_URL: backend.url });
    },
    "sudo tollgate reset-password": () => runs("sudo tollgate reset-password", {}),
    [moveTo]: async () => {
      if (whyNoPostgres === undefined) {
        // Not beside the running server.
        using folder = createTempFolder();
        await runProgram(["backup", folder.file("tollgate.db")], { DATA_DIR: program.dataDir });
        const database = await (await sharedPostgres()).createDatabase();
        await runs(moveTo, {}, { DATA_DIR: folder.path }, `${database}\n`);
      }
    },
  };

  /** Each once, and whole where a backslash continues it. */
  const lines = [...new Set(manualBlocks("sh").flatMap((block) => block.trim().split(/(?<!\\)\n(?! )/)))];

  test("are all in this test", () => {
    expect(lines.toSorted()).toEqual(Object.keys(tried).toSorted());
  });

  test.each(lines)("work: %s", async (line) => {
    await tried[line]?.();
  });
});

test.skipIf(whyNoCurl !== undefined)("the manual's script makes one key, however often it runs", async () => {
  const program = await startProgram({ ADMIN_PASSWORD: "password" });
  const [block = ""] = manualBlocks("bash");
  const [, args = ""] = /sudo tollgate (token .*?) \|/.exec(block) ?? [];
  const { stdout: token } = await runProgram(args.split(" "), { DATA_DIR: program.dataDir });
  const script = block
    .replace(`sudo tollgate ${args}`, `printf %s ${token.trim()}`)
    .replace("http://localhost:8080", program.adminUrl);
  for (let runs = 0; runs < 2; runs++) {
    const shell = Bun.spawn(["bash", "-e", "-c", script], { stderr: "pipe" });
    const [stdout, stderr] = await Promise.all([new Response(shell.stdout).text(), new Response(shell.stderr).text()]);
    expect([await shell.exited, stderr]).toEqual([0, ""]);
    expect(stdout).toContain('"tokens_per_day":1000000');
  }
  const admin = await logIn(program.adminUrl, "admin", "password");
  expect((await admin.listKeys()).map(({ name }) => name)).toEqual(["build-bot"]);
  await program.stop();
});

/** Of `sh`, each line has to be in the table above; of the others, each block is tried below or in `tests/wire`. */
test("the manual has as many blocks as are tried", () => {
  const languages = [...manual.matchAll(/^```(\w*)\n.*?^```$/gms)].map(([, language = ""]) => language);
  const counts = Object.fromEntries(languages.map((language) => [language, manualBlocks(language).length]));
  const generated = clients(sampleValues).length;
  expect(counts).toEqual({
    sh: manualBlocks("sh").length,
    bash: 1,
    yaml: 2,
    ini: 6,
    nginx: 2,
    caddyfile: 2,
    json: 7,
    text: generated,
  });
});

test("the manual's Prometheus scrapes the metrics that are served", async () => {
  const { scrape_configs: jobs } = Bun.YAML.parse(manualBlock("yaml", "scrape_configs:")) as {
    scrape_configs: { authorization: { credentials: string }; static_configs: { targets: string[] }[] }[];
  };
  const program = await startProgram({ METRICS_TOKEN: "token" });
  const [job] = jobs;
  const token = job?.authorization.credentials.replace("the METRICS_TOKEN", "token");
  const target = job?.static_configs[0]?.targets[0]?.replace("gate.internal:8080", new URL(program.adminUrl).host);
  const response = await fetch(`http://${target}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  expect([jobs.length, response.status]).toEqual([1, 200]);
  await program.stop();
});

test("the manual's file of models is one that the program accepts", () => {
  const text = manualBlock("yaml", "backends:");
  const { rewrite, queue } = readConfig({}, false);
  const byEnvironment = catalogFromEnvironment(readConfig({}, false));
  const parsed = parseModelsFile(new TextEncoder().encode(text), {
    path: "models.yaml",
    environment: { RIGHT_KEY: "sk-right" },
    defaults: { rules: byEnvironment.otherModels, maxConcurrency: queue.places },
  });
  if ("faults" in parsed) throw new Error(parsed.faults.join("\n"));
  const { backends, models, defaultModel } = parsed.catalog;
  expect(backends.map(({ name, apiKey, spill }) => [name, apiKey, spill])).toEqual([
    ["left", undefined, false],
    ["right", "sk-right", false],
    ["spare", undefined, true],
  ]);
  expect(models.map(({ name, reasoning, hanGuard }) => [name, reasoning, hanGuard])).toEqual([
    ["coder", true, rewrite.hanGuard],
    ["embedder", false, rewrite.hanGuard],
  ]);
  expect(defaultModel).toBe("coder");
});

test("the manual's bodies for the admin API have the members that it takes", () => {
  const members = (body: string) => Object.keys(JSON.parse(body) as object);
  const known = Object.keys({
    ...newKeyRequest.properties,
    ...keyChangeRequest.properties,
    ...keyPolicyRequest.properties,
  });
  expect(
    manualBlocks("json")
      .flatMap(members)
      .filter((name) => !known.includes(name)),
  ).toEqual([]);
});

describe("the manual's deployment", () => {
  const environment = manualBlock("ini", "PROXY_UPSTREAM_URL=");
  const proxied = manualBlock("ini", "TRUST_PROXY=1\n");
  const unit = manualBlock("ini", "tollgate serve");
  const backupService = manualBlock("ini", "tollgate backup");
  const backupTimer = manualBlock("ini", "[Timer]");
  const several = manualBlock("ini", "DATABASE_URL=");

  test("has settings that the program accepts", () => {
    expect(assignments(environment)).toEqual({ PROXY_UPSTREAM_URL: "http://127.0.0.1:8000" });
    expect(readConfig(assignments(environment + proxied), false).listen.trustedHops).toBe(1);
  });

  test("has a unit whose command and folders match", () => {
    expect(/^ExecStart=\/usr\/local\/bin\/tollgate serve$/m.test(unit)).toBeTrue();
    expect(assignments(unit)).toEqual({ DATA_DIR: "/var/lib/tollgate" });
    expect(unit).toContain("StateDirectory=tollgate\n");
    expect(unit).toContain("RuntimeDirectory=tollgate\n");
    expect(unit).toContain("Restart=always\n");
  });

  test.each([
    ["README.md", /docker run .*--stop-timeout (\d+)/],
    [".ci/compose.yaml", /stop_grace_period: (\d+)s/],
    ["console/src/handbook/deploy.md", /^TimeoutStopSec=(\d+)$/m],
  ])("has a stop that kills only after SHUTDOWN_GRACE, and its counts are written: %s", async (file, pattern) => {
    const [, seconds] = pattern.exec(await Bun.file(join(repositoryRoot, file)).text()) ?? [];
    expect(Number(seconds)).toBeGreaterThan(readConfig({}, false).shutdownGraceMs / 1000 + 10);
  });

  const analyze = Bun.which("systemd-analyze");
  /** The Debian package has a user of its own, which brings nothing of what `DynamicUser` implies. */
  test.skipIf(analyze === null).each([
    ["handbook's tollgate", unit],
    ["Debian package's tollgate", unit.replace("DynamicUser=yes", "User=tollgate")],
    ["backup's, which is root", backupService],
  ])("has units that systemd understands, and whose exposure it rates below 2 of 10: the %s", async (_whose, text) => {
    using folder = createTempFolder();
    const file = folder.file("tollgate.service");
    // Its program is not installed on the machine of the tests.
    await Bun.write(file, text.replace(/^ExecStart=.*/m, "ExecStart=/bin/true"));
    const run = (...args: string[]) => Bun.spawnSync([analyze ?? "", ...args, "--no-pager", file]);
    const verified = run("verify", "--recursive-errors=no");
    expect({ status: verified.exitCode, text: verified.stderr.toString() }).toEqual({ status: 0, text: "" });
    const [, level = ""] =
      /exposure level .*: ([\d.]+)/.exec(run("security", "--offline=true").stdout.toString()) ?? [];
    expect(Number(level)).toBeWithin(0.1, 2);
  });

  test("has a backup unit whose command runs, from a timer that is enabled with the others", async () => {
    using folder = createTempFolder();
    await (await startProgram({ DATA_DIR: folder.path })).stop();
    const [, command = ""] = /^ExecStart=\/usr\/local\/bin\/tollgate (.+)$/m.exec(backupService) ?? [];
    mkdirSync(folder.file("backups"));
    const args = command.replace("/var/backups/tollgate", folder.file("backups")).split(" ");
    expect(await runProgram(args, { DATA_DIR: folder.path })).toMatchObject({ status: 0, stderr: "" });
    expect(readdirSync(folder.file("backups"))).toHaveLength(1);
    // Of a DATA_DIR in the file too: a backup of another folder would go on for ever unnoticed.
    const settings = (text: string) => text.match(/^Environment(?:File)?=.*$/gm);
    expect(settings(backupService)).toEqual(settings(unit));
    expect(backupTimer).toContain("WantedBy=timers.target");
  });

  test.skipIf(analyze === null)("has a timer of the backup that systemd understands", async () => {
    using folder = createTempFolder();
    const files = [folder.file("tollgate-backup.service"), folder.file("tollgate-backup.timer")];
    await Bun.write(files[0] ?? "", backupService.replace(/ExecStart=.*/, "ExecStart=/bin/true"));
    await Bun.write(files[1] ?? "", backupTimer);
    const verified = Bun.spawnSync([analyze ?? "", "verify", "--recursive-errors=no", "--no-pager", ...files]);
    expect({ status: verified.exitCode, text: verified.stderr.toString() }).toEqual({ status: 0, text: "" });
  });

  const caddy = process.env["CADDY"] ?? Bun.which("caddy");
  test.skipIf(caddy === null)("has Caddyfiles that Caddy accepts", async () => {
    using folder = createTempFolder();
    const blocks = manualBlocks("caddyfile");
    expect(blocks).toHaveLength(2);
    for (const block of blocks) {
      await Bun.write(folder.file("Caddyfile"), block);
      const { exitCode, stderr } = Bun.spawnSync([caddy ?? "", "adapt", "--config", folder.file("Caddyfile")]);
      expect({ status: exitCode, text: exitCode === 0 ? "" : stderr.toString() }).toEqual({ status: 0, text: "" });
    }
  });

  test("has a unit that lets the JIT compiler work", () => {
    expect(unit).not.toContain("MemoryDenyWriteExecute");
  });

  test("has settings for several instances that the program accepts", () => {
    expect(readConfig(assignments(several), false).storage.databaseUrl).toStartWith("postgres://");
  });

  test.skipIf(nginx.whyMissing !== undefined)(
    "has an nginx that neither buffers nor hides the client's address",
    async () => {
      using backend = startSimulator();
      const program = await startProgram({
        ...assignments(environment + proxied),
        PROXY_UPSTREAM_URL: backend.url,
        ADMIN_PASSWORD: "password",
        LOG_FORMAT: "json",
      });
      const { key } = await (await logIn(program.adminUrl, "admin", "password")).createKey("test");
      const block = manualBlock("nginx", "ssl_certificate");
      await using balancer = await nginx.start(block.replace("http://127.0.0.1:8080", program.url));
      const { url } = balancer;
      const answer = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "x-simulate": "gap=forever@2" },
        body: JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "Hi" }] }),
      });
      const reader = answer.body?.getReader();
      // The backend sends no more: an nginx that buffers would still wait.
      expect(new TextDecoder().decode((await reader?.read())?.value)).toStartWith("data: {");
      await reader?.cancel();
      await pollUntil(() => backend.stats().open === 0);
      await fetch(`${url}/api/login`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-forwarded-for": "203.0.113.9" },
        body: JSON.stringify({ username: "admin", password: "wrong" }),
      });
      await pollUntil(() => program.stdout().includes('"address":"127.0.0.1"'));
      expect(program.stdout()).not.toContain("203.0.113.9");
      await program.stop();
    },
  );
});
