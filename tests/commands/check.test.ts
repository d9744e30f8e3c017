import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { Writable } from "node:stream";
import { withProgress } from "../../src/commands/check.ts";
import { checkCertificate, checkClock } from "../../src/commands/checks.ts";
import { readConfig } from "../../src/config/config.ts";
import { readCertificate } from "../../src/runtime/certificate.ts";
import { startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { createAuthority, whyNoOpenssl } from "../support/authority.ts";
import { findFreePort } from "../support/free-port.ts";
import { copyDatabaseWithPassword } from "../support/migrated-database.ts";
import { startProvider } from "../support/oidc-provider.ts";
import { pollUntil } from "../support/poll-until.ts";
import { sharedPostgres, whyNoPostgres } from "../support/postgres.ts";
import { commandLine, type ProgramEnvironment, runProgram, startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";

const names = ["configuration", "address", "database", "disk", "descriptors", "backend", "clock"];

/** State and text by name. */
const linesOf = (stdout: string) =>
  Object.fromEntries(
    stdout
      .trimEnd()
      .split("\n")
      .map((line) => {
        const [, state = "", name = "", text = ""] = /^(\S+) +(\S+) *(.*)$/.exec(line) ?? [];
        return [name, { state, text }];
      }),
  );

const atPostgres = (url: string) => ({ DATABASE_URL: url, SECRET_KEY: "0123456789abcdef" });

test("while a large database is read, check tells how much of it was", async () => {
  using folder = createTempFolder();
  writeFileSync(folder.file("tollgate.db"), Buffer.alloc(4_000_000));
  const lines: string[] = [];
  const stderr = new Writable({ write: (chunk, _, done) => done(void lines.push(String(chunk))) });
  const told = Promise.withResolvers<string>();
  const storage = { dataDir: folder.path, databaseUrl: undefined };
  const result = withProgress(stderr, storage, told.promise, 5);
  expect(readFileSync(folder.file("tollgate.db"))).toHaveLength(4_000_000);
  await pollUntil(() => lines.length > 0);
  told.resolve("done");
  expect(await result).toBe("done");
  expect(lines[0]).toBe("tollgate: database: 99 % read\n");
});

describe("tollgate check", () => {
  test("asks a provider of OpenID Connect what it has, and names the redirect URI", async () => {
    const consoleUrl = "http://127.0.0.1:9";
    await using provider = await startProvider(consoleUrl);
    const environment = { PORT: "0", ADMIN_URL: consoleUrl, ...provider.settings };
    const check = async (more: ProgramEnvironment) =>
      linesOf((await runProgram(["check"], { ...environment, ...more })).stdout)["sign-in"];
    const found = await check({});
    expect(found).toEqual({ state: "ok", text: `${provider.issuer} responds; redirect URI ${consoleUrl}/login/oidc` });
    expect(await check({ OIDC_SCOPES: "openid groups" })).toMatchObject({
      state: "warning",
      text: expect.stringContaining("OIDC_SCOPES: it does not have groups"),
    });
    provider.isAway = true;
    expect((await check({}))?.state).toBe("failed");
    expect(await check({ OIDC_ISSUER: `${provider.issuer}/other` })).toMatchObject({ state: "failed" });
  });

  test("finds nothing wrong with a running server, and changes nothing", async () => {
    using backend = startSimulator();
    const environment = { PROXY_UPSTREAM_URL: backend.url, ADMIN_PASSWORD: "password" };
    const program = await startProgram(environment);
    await (await logIn(program.adminUrl, "admin", "password")).createKey("test");
    const files = readdirSync(program.dataDir).toSorted();
    const { status, stdout, stderr } = await runProgram(["check"], {
      PORT: "0",
      ...environment,
      DATA_DIR: program.dataDir,
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const lines = linesOf(stdout);
    expect(Object.keys(lines)).toEqual(names);
    for (const name of ["configuration", "database", "disk", "backend", "clock"]) {
      expect({ name, state: lines[name]?.state }).toEqual({ name, state: "ok" });
    }
    expect(lines["database"]?.text).toStartWith(`${program.dataDir}/tollgate.db, `);
    expect(lines["backend"]?.text).toBe(`${backend.url} responds 200 to /v1/models`);
    expect(readdirSync(program.dataDir).toSorted()).toEqual(files);
    await program.stop();
  });

  test("names what a backend stores for all keys alike", async () => {
    using backend = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      routes: {
        "/v1/models": Response.json({ data: [] }),
        "/v1/vector_stores": Response.json({ data: [] }),
        "/v1/fine_tuning/jobs": Response.json({ data: [] }),
        "/v1/evals": new Response("<html>", { headers: { "content-type": "text/html" } }),
        "/*": Response.json({ error: {} }, { status: 404 }),
      },
    });
    const url = `http://127.0.0.1:${backend.port}`;
    const { stdout } = await runProgram(["check"], { PORT: "0", PROXY_UPSTREAM_URL: url });
    expect(linesOf(stdout)["backend"]).toEqual({
      state: "ok",
      text: `${url} responds 200 to /v1/models; keys share what it has under /v1/vector_stores and /v1/fine_tuning/jobs, unless their paths are closed`,
    });
  });

  test("warns of an engine that goes by the priority of clients, and of a private cache that it does not know", async () => {
    const serve = (routes: Record<string, Response>) =>
      Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        routes: { "/v1/models": Response.json({ data: [] }), ...routes },
        fetch: () => Response.json({}, { status: 404 }),
      });
    using vllm = serve({
      "/version": Response.json({ version: "0.30.0" }),
      "/server_info": Response.json({ vllm_config: { scheduler_config: { policy: "priority" } } }),
    });
    using sglang = serve({
      "/metrics": new Response("# TYPE sglang:num_running_reqs gauge\n"),
      "/server_info": Response.json({ enable_priority_scheduling: true }),
    });
    using llama = serve({ "/metrics": new Response("", { headers: { server: "llama.cpp" } }) });
    using folder = createTempFolder();
    const path = folder.file("models.yaml");
    const check = async (members: string, environment: ProgramEnvironment = {}) => {
      await Bun.write(
        path,
        `backends:
  vllm: { url: "${vllm.url.origin}"${members} }
  sglang: { url: "${sglang.url.origin}"${members} }
  llama: { url: "${llama.url.origin}"${members} }
models: { m: { backends: [vllm, sglang], private_cache: key }, l: { backends: [llama], private_cache: team } }
`,
      );
      const SECRET_KEY = "0123456789abcdef";
      const settings = { PORT: "0", MODELS_FILE: path, DATA_DIR: folder.file("data"), SECRET_KEY, ...environment };
      const { stdout } = await runProgram(["check"], settings);
      return [...stdout.matchAll(/^(\w+) +backend +(\w+): \S+ responds 200 to \/v1\/models(?:; )?(.*)$/gm)].map(
        ([, state, name, problems]) => [name, state, problems],
      );
    };
    const priority = "its engine goes by the priority of clients; set priority or engine_members of the backend";
    const without = (engine: string, where: string) =>
      `${engine} knows no private_cache on ${where}; close that, or leave private_cache out`;
    expect(await check("")).toEqual([
      ["vllm", "warning", `${priority}; ${without("vllm", "/v1/messages")}`],
      ["sglang", "warning", `${priority}; ${without("sglang", "/v1/messages")}`],
      ["llama", "warning", without("llama.cpp", "any path")],
    ]);
    expect(await check(", engine_members: drop", { PROXY_CLOSED_PATHS: "/v1/Messages*" })).toEqual([
      ["vllm", "ok", ""],
      ["sglang", "ok", ""],
      ["llama", "warning", without("llama.cpp", "any path")],
    ]);
    expect((await check(", priority: low_first")).map(([, , problems]) => problems)).toEqual([
      without("vllm", "/v1/messages"),
      without("sglang", "/v1/messages"),
      without("llama.cpp", "any path"),
    ]);
  });

  test("tries each backend of MODELS_FILE", async () => {
    using backend = startSimulator();
    using folder = createTempFolder();
    const gone = `http://127.0.0.1:${findFreePort()}`;
    const path = folder.file("models.yaml");
    await Bun.write(path, `backends: { gone: { url: "${gone}" }, there: { url: "${backend.url}" } }\n`);
    const settings = { PORT: "0", MODELS_FILE: path, DATA_DIR: folder.file("data") };
    const { status, stdout } = await runProgram(["check"], settings);
    expect(status).toBe(1);
    expect(stdout).toMatch(new RegExp(`^ok +models +${path}, 2 backends, 0 models, SHA-256 [0-9a-f]{64}$`, "m"));
    expect(stdout).toMatch(new RegExp(`^failed +backend +gone: ${gone} is not reachable \\(ECONNREFUSED\\)$`, "m"));
    expect(stdout).toMatch(new RegExp(`^ok +backend +there: ${backend.url} responds 200 to /v1/models$`, "m"));
    expect(stdout).toMatch(/^ok +clock/m);
  });

  test("passes before the first start, and creates nothing", async () => {
    using backend = startSimulator();
    using folder = createTempFolder();
    const settings = { PORT: "0", PROXY_UPSTREAM_URL: backend.url, DATA_DIR: folder.file("data") };
    const { status, stdout } = await runProgram(["check"], settings);
    expect(status).toBe(0);
    expect(linesOf(stdout)["database"]).toEqual({
      state: "ok",
      text: `${folder.file("data/tollgate.db")}: empty; the first start creates its tables`,
    });
    expect(readdirSync(folder.path)).toEqual([]);
  });

  test("reports a backend that cannot be reached, with every other line", async () => {
    const port = findFreePort();
    const { status, stdout } = await runProgram(["check"], {
      PORT: "0",
      PROXY_UPSTREAM_URL: `http://127.0.0.1:${port}`,
    });
    expect(status).toBe(1);
    const lines = linesOf(stdout);
    expect(Object.keys(lines)).toEqual(names);
    expect(lines["backend"]).toEqual({
      state: "failed",
      text: `http://127.0.0.1:${port} is not reachable (ECONNREFUSED)`,
    });
  });

  test.each([
    [401, "warning", 0],
    [404, "ok", 0],
    [503, "failed", 1],
  ])("takes a backend that responds %p for %p", async (code, state, expected) => {
    using backend = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("", { status: code }) });
    const { status, stdout } = await runProgram(["check"], { PORT: "0", PROXY_UPSTREAM_URL: backend.url.origin });
    expect({ status, state: linesOf(stdout)["backend"]?.state }).toEqual({ status: expected, state });
    await backend.stop(true);
  });

  test("reports a damaged, a lost and a newer database", async () => {
    using backend = startSimulator();
    using folder = createTempFolder();
    await (await startProgram({ DATA_DIR: folder.path })).stop();
    const check = async () => {
      const { status, stdout } = await runProgram(["check"], {
        PORT: "0",
        DATA_DIR: folder.path,
        PROXY_UPSTREAM_URL: backend.url,
      });
      return { status, ...linesOf(stdout)["database"] };
    };
    const file = folder.file("tollgate.db");
    const bytes = await Bun.file(file).bytes();
    await Bun.write(
      file,
      bytes.map((byte, at) => (at > 8192 ? byte ^ 0x5a : byte)),
    );
    expect(await check()).toMatchObject({ status: 1, state: "failed", text: expect.stringContaining("damaged") });
    await Bun.write(file, "");
    expect(await check()).toMatchObject({ status: 1, state: "failed", text: expect.stringContaining("is empty") });
    await Bun.write(file, bytes);
    using database = new Database(file);
    database.run("UPDATE __drizzle_migrations SET created_at = -99999999999999 WHERE created_at < 0");
    database.run("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('x', 99999999999999)");
    expect(await check()).toMatchObject({ status: 1, state: "failed", text: expect.stringContaining("newer version") });
  });

  test("reports a setting that looks misspelt", async () => {
    const { stdout } = await runProgram(["check"], { PORT: "0", MAX_BODY_BYTE: "1" });
    expect(linesOf(stdout)["configuration"]).toEqual({
      state: "warning",
      text: "MAX_BODY_BYTE is unknown; is it MAX_BODY_BYTES?",
    });
  });

  test("is silent if its reader leaves after the first line", async () => {
    using folder = createTempFolder();
    const line = `${commandLine(["check"]).join(" ")} | head -1; echo "\${PIPESTATUS[*]}"`;
    const env = { PATH: process.env["PATH"] ?? "", HOME: folder.path, DATA_DIR: folder.path };
    const { stdout, stderr } = Bun.spawnSync(["bash", "-c", line], { env, cwd: folder.path });
    expect(stderr.toString()).toBe("");
    expect(stdout.toString()).toMatch(/^ok +configuration *\n1 0\n$/);
  });

  test.skipIf(whyNoPostgres !== undefined)("inspects PostgreSQL before and after the first start", async () => {
    using backend = startSimulator();
    const url = await (await sharedPostgres()).createDatabase();
    const settings = { ...atPostgres(url), PROXY_UPSTREAM_URL: backend.url };
    const checked = { ...settings, PORT: "0" };
    const check = async () => {
      const { status, stdout } = await runProgram(["check"], checked);
      return { status, ...linesOf(stdout) };
    };
    expect(await check()).toMatchObject({
      status: 0,
      database: { state: "ok", text: "PostgreSQL: empty; the first start creates its tables" },
    });
    await (await startProgram(settings)).stop();
    expect(await check()).toMatchObject({
      status: 0,
      database: { state: "ok", text: expect.stringMatching(/^PostgreSQL, [\d.]+ MiB$/) },
      clock: { state: "ok" },
    });
    await (
      await sharedPostgres()
    ).run("insert into tollgate_migrations values (99999999999999, 'x'), (-99999999999999, 'least writer')", url);
    expect(await check()).toMatchObject({
      status: 1,
      database: { state: "failed", text: expect.stringContaining("newer version") },
    });
  });

  test("does not show the password of a PostgreSQL that cannot be reached", async () => {
    const url = `postgres://tollgate:hidden@127.0.0.1:${findFreePort()}/d`;
    const { status, stdout, stderr } = await runProgram(["check"], { PORT: "0", ...atPostgres(url) });
    expect(status).toBe(1);
    expect(linesOf(stdout)["database"]).toMatchObject({ state: "failed" });
    expect(stdout + stderr).not.toContain("hidden");
  });
});

/** What keeps `serve` from starting keeps `check` from saying ok, with the same words. */
describe("tollgate check says what a start says of", () => {
  async function expectSameProblem(settings: ProgramEnvironment, line: string, words: string | RegExp): Promise<void> {
    const environment = { PORT: String(findFreePort()), ...settings };
    const start = await runProgram(["serve"], environment);
    const [, reason = ""] = /^tollgate: (?:DATA_DIR "[^"]*": )?(.*)\n$/.exec(start.stderr) ?? [];
    expect(reason).toMatch(words);
    const check = await runProgram(["check"], environment);
    expect({ status: check.status, stderr: check.stderr }).toEqual({ status: 1, stderr: "" });
    const found = linesOf(check.stdout)[line];
    expect({ state: found?.state, text: found?.text }).toEqual({
      state: "failed",
      text: expect.stringContaining(reason),
    });
  }

  test.skipIf(whyNoOpenssl !== undefined)("a certificate that is missing, or not that of the key", async () => {
    using authority = await createAuthority();
    const [one, other] = [authority.sign("one"), authority.sign("other")];
    const missing = { TLS_CERT: "/none.pem", TLS_KEY: one.keyFile };
    await expectSameProblem(missing, "certificate", 'TLS_CERT: "/none.pem" cannot be read (ENOENT)');
    const swapped = { TLS_CERT: one.certFile, TLS_KEY: other.keyFile };
    await expectSameProblem(swapped, "certificate", "is not the key of the certificate");
  });

  test("a HOST that does not resolve, is not of this machine, or is a file", async () => {
    using folder = createTempFolder();
    await Bun.write(folder.file("precious"), "precious");
    await expectSameProblem({ HOST: "gate.invalid" }, "address", "does not resolve");
    await expectSameProblem({ HOST: "203.0.113.1" }, "address", "cannot listen on 203.0.113.1");
    const socket = { HOST: `unix:${folder.file("precious")}` };
    await expectSameProblem(socket, "address", "exists and is not a socket");
    await expectSameProblem({ HOST: `unix:${folder.file("none/x.sock")}` }, "address", "(ENOENT)");
    expect(await Bun.file(folder.file("precious")).text()).toBe("precious");
  });

  test("a port that another program has", async () => {
    using other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("", { status: 404 }) });
    await expectSameProblem({ PORT: String(other.port) }, "address", "is in use by another program");
  });

  test.each<[string, string[], RegExp]>([
    ["a lost table", ["DROP TABLE usage_day"], /usage_day/],
    ["a lost column", ["ALTER TABLE sessions RENAME COLUMN id_hash TO gone"], /id_hash/],
  ])("a database with %s", async (_, statements, words) => {
    using folder = createTempFolder();
    copyDatabaseWithPassword(folder.path);
    {
      using database = new Database(folder.file("tollgate.db"));
      for (const statement of statements) database.run(statement);
    }
    await expectSameProblem({ DATA_DIR: folder.path }, "database", words);
  });

  test("a database that another program has locked", async () => {
    using folder = createTempFolder();
    copyDatabaseWithPassword(folder.path);
    using database = new Database(folder.file("tollgate.db"));
    database.run("BEGIN IMMEDIATE");
    await expectSameProblem({ DATA_DIR: folder.path }, "database", "another program has locked the database");
  });

  test("a secret_key that is too short", async () => {
    using folder = createTempFolder();
    copyDatabaseWithPassword(folder.path);
    await Bun.write(folder.file("secret_key"), "short\n");
    await expectSameProblem({ DATA_DIR: folder.path }, "database", "holds no usable key");
  });
});

test.skipIf(whyNoOpenssl !== undefined)("check warns of a certificate that ends soon", async () => {
  using authority = await createAuthority();
  const files = authority.sign("one");
  const config = readConfig({ TLS_CERT: files.certFile, TLS_KEY: files.keyFile }, false);
  const { validTo } = readCertificate(files);
  const stateAt = async (leftMs: number) => (await checkCertificate(config, validTo.getTime() - leftMs))?.state;
  expect([await stateAt(15 * 86_400_000), await stateAt(86_400_000), await stateAt(0)]).toEqual([
    "ok",
    "warning",
    "failed",
  ]);
});

describe("the clock", () => {
  const now = Date.UTC(2027, 0, 1);
  const day = 86_400_000;
  const state = (lastUsedAt: number | undefined, serverTime = now) => ({
    bytes: 0,
    pendingMigrations: 0,
    lastUsedAt,
    serverTime,
  });
  const sqlite = (lastUsedAt: number) => ({ bytes: 0, pendingMigrations: 0, lastUsedAt });
  const backendAt = (ms: number) => ({ status: 200, date: new Date(ms).toUTCString() });

  test.each([
    ["ok", { now, database: state(now), backend: backendAt(now) }],
    ["ok", { now, database: undefined, backend: undefined }],
    ["ok", { now, database: state(undefined), backend: { status: 200, date: "yesterday" } }],
    ["failed", { now: 0, database: undefined, backend: undefined }],
    ["failed", { now, database: state(now + 90_000), backend: backendAt(now + 90_000) }],
    ["failed", { now, database: state(now + 90_000, now + 90_000), backend: undefined }],
    ["warning", { now, database: sqlite(now + 40 * day), backend: backendAt(now) }],
    ["warning", { now, database: sqlite(now + 40 * day), backend: undefined }],
    ["warning", { now, database: state(now + 90_000), backend: backendAt(now - 90_000) }],
    ["warning", { now, database: undefined, backend: backendAt(now - 90_000) }],
    ["warning", { now, database: state(now, now + 90_000), backend: backendAt(now) }],
  ] as const)("is %p for %p", (expected, witnesses) => {
    expect(checkClock(witnesses).state).toBe(expected);
  });

  test.each([
    [backendAt(now + 90_000), "90 s behind the clock of the backend, and 90 s behind the newest request"],
    [backendAt(now), "90 s behind the newest request: that was wrong, as the backend has the same time"],
    [undefined, "90 s behind the newest request: either is wrong"],
  ])("is described with the difference: %p", (backend, words) => {
    const database = sqlite(now + 90_000);
    expect(checkClock({ now, database, backend }).text).toBe(`2027-01-01T00:00:00.000Z is ${words}`);
  });
});

describe("tollgate check --quick", () => {
  test("prints ok while a server runs, and fails when it has stopped", async () => {
    const program = await startProgram();
    const settings = { PORT: new URL(program.url).port };
    expect(await runProgram(["check", "--quick"], settings)).toEqual({ status: 0, stdout: "ok\n", stderr: "" });
    await program.stop();
    const { status, stderr } = await runProgram(["check", "--quick"], settings);
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: `tollgate: check: ${program.url}/healthz does not respond (ECONNREFUSED)\n`,
    });
  });

  test("finds the server at its admin port, whatever address it listens on", async () => {
    const ports = { PORT: String(findFreePort()), ADMIN_PORT: String(findFreePort()) };
    const settings = { ...ports, HOST: "0.0.0.0", ADMIN_HOST: "0.0.0.0" };
    const program = await startProgram(settings);
    expect((await runProgram(["check", "--quick"], settings)).stdout).toBe("ok\n");
    await program.stop();
  });

  test.each([[{ PORT: "0" }], [{ PORT: "1", ADMIN_PORT: "0" }]])("knows no port to ask with %j", async (settings) => {
    const { status, stderr } = await runProgram(["check", "--quick"], settings);
    expect(status).toBe(2);
    expect(stderr).toContain("PORT: 0 lets the system choose the port");
  });

  test("fails if another program has the port", async () => {
    using other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("", { status: 404 }) });
    const { status, stderr } = await runProgram(["check", "--quick"], { PORT: String(other.port) });
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: `tollgate: check: http://127.0.0.1:${other.port}/healthz responds 404\n`,
    });
  });
});
