import { Database } from "bun:sqlite";
import { closeSync, openSync, renameSync, rmSync, statSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { clientOf } from "../support/client.ts";
import { startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());

function post(gate: Pick<Tollgate, "url" | "key">, fields = {}, id: string = crypto.randomUUID()): Promise<Response> {
  const body = { model: "m", messages: [{ role: "user", content: "Hi" }], ...fields };
  const sent = { script: "usage=3,4", headers: { "x-request-id": id } };
  return clientOf(gate.url, gate.key).send("/v1/chat/completions", body, sent);
}

describe("while another program holds the database", () => {
  test("requests are served, counts wait visibly, and each is written once later", async () => {
    using folder = createTempFolder();
    await using gate = await startTollgate(
      { PROXY_UPSTREAM_URL: backend.url, METRICS_TOKEN: "scrape" },
      { dataDir: folder.path },
    );
    const metric = async (name: string): Promise<number> => {
      const response = await fetch(`${gate.adminUrl}/metrics`, { headers: { authorization: "Bearer scrape" } });
      const [, value] = new RegExp(`^${name}(?:{[^}]*})? ([\\d.e+-]+)$`, "m").exec(await response.text()) ?? [];
      return Number(value);
    };
    const other = new Database(folder.file("tollgate.db"));
    other.run("BEGIN IMMEDIATE");

    const begun = performance.now();
    expect((await post(gate)).status).toBe(200);
    // The first request waits for the ledger's limit; later ones do not wait.
    expect(performance.now() - begun).toBeLessThan(5000);
    await gate.waitForLog(({ message }) => String(message).includes("buffering usage in memory"));
    for (const response of await Promise.all(Array.from({ length: 50 }, () => post(gate)))) {
      expect(response.status).toBe(200);
      await response.text();
    }
    expect(await metric("tollgate_ledger_waiting_requests")).toBe(51);
    expect(await metric("tollgate_ledger_waiting_keys")).toBe(1);
    // A commit fails only once SQLite has waited for the lock as long as it may.
    await pollUntil(async () => (await metric("tollgate_storage_commit_failures_total")) > 0);

    other.run("ROLLBACK");
    other.close();
    await pollUntil(async () => (await metric("tollgate_ledger_waiting_requests")) === 0);
    expect(await gate.readKey()).toMatchObject({
      total_request_count: 51,
      total_input_tokens: 153,
      total_output_tokens: 204,
    });
    await gate.waitForLog(({ message }) => String(message).includes("available again"));
    expect(await metric("tollgate_storage_commit_duration_seconds_count")).toBeGreaterThan(0);
  });

  test.each([
    ["whole", {}],
    ["streamed", { stream: true }],
  ])("client, log line, row and statistics name the same duration of a %s response", async (id, body) => {
    using folder = createTempFolder();
    await using gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url }, { dataDir: folder.path });
    const other = new Database(folder.file("tollgate.db"));
    other.run("BEGIN IMMEDIATE");
    backend.clear();
    const sent = performance.now();
    const response = post(gate, body, id);
    await backend.nextRequest();
    const reachedBackend = performance.now();
    // Storage that is slow, but not so slow that responses stop waiting.
    await Bun.sleep(600);
    const heldMs = performance.now() - reachedBackend;
    other.run("ROLLBACK");
    other.close();
    await (await response).text();
    const seenMs = performance.now() - sent;

    const line = await gate.waitForLog(({ requestId }) => requestId === id);
    const durationMs = Number(line["durationMs"]);
    expect(durationMs).toBeGreaterThan(heldMs);
    expect(durationMs).toBeLessThanOrEqual(seenMs);
    const readRow = async () => {
      const requests = await gate.admin.listRequests(`?request_id=${id}`);
      expect(requests).toHaveLength(1);
      return requests[0] ?? { duration_ms: 0, ended_at: "" };
    };
    await pollUntil(async () => Math.abs((await readRow()).duration_ms - durationMs) <= 0.05);
    // Less than storage was slow for.
    expect(Math.abs(Date.parse((await readRow()).ended_at) - Date.parse(String(line["time"])))).toBeLessThan(500);
    const metrics = await (await gate.admin.request("GET", "/metrics")).text();
    const [, sum] = /^tollgate_request_duration_seconds_sum{.*} (\S+)$/m.exec(metrics) ?? [];
    expect(Math.abs(Number(sum) * 1000 - durationMs)).toBeLessThanOrEqual(0.05);
  });
});

describe("while the database file is moved away", () => {
  test("requests are served, keys are checked, and /readyz is 503", async () => {
    using folder = createTempFolder();
    await using gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url }, { dataDir: folder.path });
    const readiness = async (): Promise<number> => (await fetch(`${gate.adminUrl}/readyz`)).status;
    expect(await readiness()).toBe(200);
    renameSync(folder.file("tollgate.db"), folder.file("moved.db"));
    await pollUntil(async () => (await readiness()) === 503);
    expect((await post(gate)).status).toBe(200);
    expect((await gate.send("/v1/models", undefined, { key: "wrong" })).status).toBe(401);
    await gate.waitForLog(({ message }) => String(message).startsWith("Database file is gone"));
    renameSync(folder.file("moved.db"), folder.file("tollgate.db"));
    await pollUntil(async () => (await readiness()) === 200);
    await gate.waitForLog(({ message }) => message === "Database file is back");
    expect(await gate.readKey()).toMatchObject({ total_request_count: 1, total_input_tokens: 3 });
  });
});

test("a server whose database's log was deleted says so, and a stop saves its counts", async () => {
  using folder = createTempFolder();
  const environment = { DATA_DIR: folder.path, PROXY_UPSTREAM_URL: backend.url, ADMIN_PASSWORD: "password" };
  const program = await startProgram(environment);
  const { key } = await (await logIn(program.adminUrl, "admin", "password")).createKey("test");
  rmSync(folder.file("tollgate.db-wal"));
  await pollUntil(async () => (await fetch(`${program.url}/readyz`)).status === 503);
  await pollUntil(() => program.stdout().includes("Database log is gone"));
  expect((await post({ url: program.url, key })).status).toBe(200);
  expect(await program.stop()).toBe(0);
  const next = await startProgram(environment);
  const [listed] = await (await logIn(next.adminUrl, "admin", "password")).listKeys();
  expect(listed).toMatchObject({ total_request_count: 1, total_input_tokens: 3 });
  expect((await fetch(`${next.url}/readyz`)).status).toBe(200);
  expect(await next.stop()).toBe(0);
});

test.each<[string, (file: string) => void]>([
  ["deleted", (file) => rmSync(file)],
  ["moved away", (file) => renameSync(file, `${file}.old`)],
])("a server whose database file was %s ends with status 1", async (_, lose) => {
  using folder = createTempFolder();
  const program = await startProgram({ DATA_DIR: folder.path });
  lose(folder.file("tollgate.db"));
  expect(await program.stop()).toBe(1);
  expect(program.stdout()).toContain(
    '"message":"Counts are lost","reason":"the database file was moved, deleted or replaced"',
  );
});

/** Creates a database with one key and one count, and closes it. */
async function makeDatabase(path: string): Promise<string> {
  await using gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url }, { dataDir: path });
  await (await post(gate)).text();
  return gate.key;
}

function overwrite(file: string, from: number, to: number): void {
  const descriptor = openSync(file, "r+");
  writeSync(descriptor, Buffer.alloc(to - from, 0x5a), 0, to - from, from);
  closeSync(descriptor);
}

function replaceDatabase(file: string): void {
  rmSync(file);
  using database = new Database(file);
  database.run("CREATE TABLE notes (text TEXT)");
}

const startError = (dataDir: string): Promise<string> =>
  startProgram({ DATA_DIR: dataDir }).then(
    () => "The program started",
    (error: Error) => error.message,
  );

describe("a start with a database that", () => {
  test.each<[string, (file: string) => void, string]>([
    ["has lost its head", (file) => overwrite(file, 0, 100), "not a database of this program"],
    ["has lost all its pages but the first", (file) => overwrite(file, 4096, statSync(file).size), "is damaged"],
    ["was deleted", (file) => rmSync(file), "tollgate.db was deleted; restore a backup"],
    ["was emptied", (file) => truncateSync(file), "tollgate.db is empty; restore a backup"],
    ["is another program's", (file) => replaceDatabase(file), "the database belongs to another program"],
    ["is something else", (file) => writeFileSync(file, "notes\n".repeat(1000)), "not a database of this program"],
  ])("%s fails with one line that says so", async (_, damage, words) => {
    using folder = createTempFolder();
    await makeDatabase(folder.path);
    damage(folder.file("tollgate.db"));
    const failure = await startError(folder.path);
    expect(failure).toContain("exited with 1");
    expect(failure).toContain(words);
    expect(failure.trimEnd().split("\n")).toHaveLength(2);
  });

  test.each(["/proc/tollgate", "/dev/null/tollgate"])("cannot be created (%s) fails with one line", async (dataDir) => {
    const failure = await startError(dataDir);
    expect(failure).toContain(`tollgate: DATA_DIR "${dataDir}"`);
    expect(failure).not.toContain("    at ");
  });
});

describe("a damaged page", () => {
  test("in the counters affects neither keys nor responses, and is logged", async () => {
    using folder = createTempFolder();
    const key = await makeDatabase(folder.path);
    const file = folder.file("tollgate.db");
    const database = new Database(file);
    const { page } = database
      .query<{ page: number }, []>("SELECT rootpage AS page FROM sqlite_schema WHERE name = 'usage_day'")
      .get() ?? { page: 0 };
    database.close();
    overwrite(file, (page - 1) * 4096, page * 4096);
    const program = await startProgram({ PROXY_UPSTREAM_URL: backend.url, DATA_DIR: folder.path });
    // The flush after a fold that failed tells of it, whenever that is.
    await pollUntil(async () => {
      expect((await post({ url: program.url, key })).status).toBe(200);
      return program.stdout().includes("the database is damaged; restore a backup");
    });
    expect((await fetch(`${program.url}/v1/models`, { headers: { "x-api-key": "wrong" } })).status).toBe(401);
    await program.stop("SIGKILL");
  });
});
