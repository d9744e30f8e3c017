// Lets a real Prometheus scrape three Tollgates: one on a disk of its own with two processes, one on PostgreSQL with HTTPS,
// and one with backups and a clock that is set. Causes each alert and each state, and prints when it came and when it was
// over. Takes 20 minutes, most of it those after which states go, and root and Debian's package `prometheus`;
// `rules.test.ts` and `states.test.ts` check the times.
//   unshare --mount bun tests/watching/fire-alerts.ts
import { Database } from "bun:sqlite";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { noBackendCounts } from "../../src/domain/backends.ts";
import { dayNumberOf, minuteOf } from "../../src/time/seoul.ts";
import { alerts, alertsYaml } from "../../src/watching/prometheus-alerts.ts";
import { kindNames } from "../../src/watching/states.ts";
import { seed } from "../browser/support/seed.ts";
import { logIn } from "../support/admin-client.ts";
import { createAuthority, replaceFiles } from "../support/authority.ts";
import { findFreePort } from "../support/free-port.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPostgres } from "../support/postgres.ts";
import { childrenOf } from "../support/proc.ts";
import { commandLine } from "../support/program.ts";
import { startSimulator } from "../support/simulator/simulator.ts";
import { createTempFolder } from "../support/temp-folder.ts";

const deadlineMs = 150_000;
/** The longest after which a state goes by itself is ten minutes. */
const goneMs = 13 * 60_000;
const minute = 60_000;
const metricsToken = "scrape-me";
process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";

using folder = createTempFolder();
using authority = await createAuthority();
await using postgres = await startPostgres();
let backends = [startSimulator(), startSimulator()];
const ports = backends.map(({ url }) => Number(new URL(url).port));
const dataDir = folder.file("data");
mkdirSync(dataDir);
// A file system of its own, so that it can be full.
const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=200m", "none", dataDir], { stderr: "inherit" });
if (!mounted.success) process.exit(1);
await seedPast();
const modelsFile = folder.file("models.yaml");
const models = JSON.stringify({
  backends: {
    left: { url: backends[0]?.url },
    right: { url: backends[1]?.url, max_concurrency: 1 },
    idle: { url: backends[1]?.url },
  },
  models: { m: { backends: ["left"] }, q: { backends: ["right"] }, i: { backends: ["idle"] } },
});
writeFileSync(modelsFile, models);
const files = authority.sign("short");
const renewed = authority.signFor(90, "renewed");

/** @returns its address */
async function start(scheme: string, environment: Record<string, string>, command = commandLine(["serve"])) {
  const url = `${scheme}://127.0.0.1:${findFreePort()}`;
  const child = Bun.spawn(["sh", "-c", 'ulimit -n 250 && exec "$@"', "sh", ...command], {
    env: {
      PATH: process.env["PATH"] ?? "",
      PORT: new URL(url).port,
      ADMIN_PASSWORD: "password",
      METRICS_TOKEN: metricsToken,
      SECRET_KEY: "0123456789abcdef",
      LOG_LEVEL: "error",
      ...environment,
    },
    stdout: "ignore",
    stderr: "inherit",
  });
  await pollUntil(async () => (await fetch(`${url}/healthz`)).ok, deadlineMs);
  return { url, child, admin: await logIn(url, "admin", "password") };
}

const onDisk = await start("http", {
  DATA_DIR: dataDir,
  MODELS_FILE: modelsFile,
  PROCESSES: "2",
  PROXY_QUEUE_SIZE: "0",
});
const onPostgres = await start("https", {
  DATABASE_URL: await postgres.createDatabase(),
  DATA_DIR: folder.file("other"),
  PROXY_UPSTREAM_URL: backends[0]?.url ?? "",
  TLS_CERT: files.certFile,
  TLS_KEY: files.keyFile,
});
/** By how many milliseconds the clock of the third is ahead; in the file too. */
let aheadMs = 0;
const aheadFile = folder.file("ahead");
writeFileSync(aheadFile, "0");
const clockFile = folder.file("clock.ts");
writeFileSync(
  clockFile,
  `import { readFileSync } from "node:fs";
  const now = Date.now;
  Date.now = () => now() + Number(readFileSync(${JSON.stringify(aheadFile)}, "utf8"));`,
);
const backupDir = folder.file("backups");
const withBackups = await start(
  "http",
  { DATA_DIR: folder.file("third"), PROXY_UPSTREAM_URL: backends[0]?.url ?? "", BACKUP_DIR: backupDir },
  [process.execPath, "--preload", clockFile, join(import.meta.dir, "../../src/main.ts"), "serve"],
);
const { url, admin } = onDisk;
const { key } = await admin.createKey("test");
const { key: limitedKey } = await admin.createKey("limited", { requests_per_minute: 1000 });
const { key: postgresKey } = await onPostgres.admin.createKey("limited", { requests_per_minute: 1000 });
const prometheusUrl = `http://127.0.0.1:${findFreePort()}`;
const prometheus = await startPrometheus();
const startedAt = performance.now();
/** Alerts, and states of the one program or the other, that fire now; and those that fired. */
let firing: ReadonlySet<string> = new Set();
const fired = new Set<string>();
const over = new Set<string>();
const watch = setInterval(() => void collect(), 500);

try {
  await fireEach();
} finally {
  clearInterval(watch);
  for (const { child } of [onDisk, onPostgres, withBackups, { child: prometheus }]) child.kill("SIGKILL");
  for (const backend of backends) backend.stop();
  await prometheus.exited;
  Bun.spawnSync(["umount", "-l", dataDir]);
}

const missing = [
  ...alerts.map(({ name }) => name).filter((name) => !fired.has(name)),
  ...kindNames.filter((kind) => !over.has(kind)),
];
process.stdout.write(
  missing.length === 0
    ? "each alert fired, and each state came and went\n"
    : `did not come, or did not go: ${missing.join(", ")}\n`,
);
process.exit(missing.length === 0 ? 0 : 1);

/** What takes days to come about. */
async function seedPast(): Promise<void> {
  const now = Date.now();
  await seed(dataDir, async (store) => {
    const add = (at: number, bucket: number, requestCount: number) =>
      store.traffic.add({
        latencies: [],
        outcomes: [],
        backends: [
          {
            ...noBackendCounts,
            minute: minuteOf(at),
            backend: "left",
            requestCount,
            firstByte: `${bucket}:${requestCount}`,
          },
        ],
      });
    for (let day = 1; day < 7; day++) await add(now - day * 1440 * minute, 10, 100);
    await add(now, 200, 40);
    await store.backends.drain({ backend: "idle", since: now - 1500 * minute, username: "admin" });
    const reading = { backend: "left", source: "vllm", promptTokens: 0 };
    await store.reconciliation.add({ ...reading, at: now - 2 * minute, generatedTokens: 5 });
    await store.reconciliation.add({ ...reading, at: now - minute, generatedTokens: 100_005 });
  });
}

async function startPrometheus(): Promise<Bun.Subprocess> {
  // Each alert waits long enough to be sure. Here only one waits, for the first scrape.
  const rules = alertsYaml().replaceAll(/for: .+/g, "for: 0s");
  await Bun.write(folder.file("alerts.yaml"), rules.replace(/(?<=TollgateDown\n.*\n.*for: ).*/, "15s"));
  const job = (name: string, { url: at }: { url: string }) => ({
    job_name: name,
    scheme: new URL(at).protocol.slice(0, -1),
    tls_config: { insecure_skip_verify: true },
    authorization: { credentials: metricsToken },
    static_configs: [{ targets: [new URL(at).host] }],
  });
  const configuration = {
    global: { scrape_interval: "1s", evaluation_interval: "1s" },
    rule_files: ["alerts.yaml"],
    scrape_configs: [job("disk", onDisk), job("postgres", onPostgres), job("backups", withBackups)],
  };
  // JSON is YAML.
  await Bun.write(folder.file("prometheus.yml"), JSON.stringify(configuration));
  const child = Bun.spawn(
    [
      "prometheus",
      `--config.file=${folder.file("prometheus.yml")}`,
      `--storage.tsdb.path=${folder.file("series")}`,
      `--web.listen-address=${new URL(prometheusUrl).host}`,
      "--log.level=error",
    ],
    { stdout: "ignore", stderr: "inherit" },
  );
  await pollUntil(async () => (await fetch(`${prometheusUrl}/-/ready`)).ok);
  return child;
}

async function collect(): Promise<void> {
  const response = await fetch(`${prometheusUrl}/api/v1/alerts`).catch(() => undefined);
  if (response === undefined) return;
  const { data } = (await response.json()) as {
    data: { alerts: { state: string; labels: { alertname: string; kind?: string } }[] };
  };
  const now = new Set(
    data.alerts
      .filter(({ state }) => state === "firing")
      .flatMap(({ labels: { alertname, kind } }) => [alertname, kind ?? alertname]),
  );
  for (const name of now) if (!firing.has(name)) tell(name, "fires");
  for (const name of firing) if (!now.has(name)) tell(name, "is over");
  for (const name of now) fired.add(name);
  firing = now;
}

function tell(name: string, what: string): void {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0).padStart(4);
  process.stdout.write(`${seconds} s  ${name} ${what}\n`);
}

async function comes(...names: string[]): Promise<void> {
  await pollUntil(() => names.every((name) => firing.has(name)), deadlineMs);
}

/** Over for a while: a program of which a process is replaced has no metrics of it for a moment. */
async function goes(...names: string[]): Promise<void> {
  let since = Infinity;
  await pollUntil(() => {
    const isOver = names.every((name) => !firing.has(name));
    since = isOver ? Math.min(since, performance.now()) : Infinity;
    return performance.now() - since > 5000;
  }, goneMs);
  for (const name of names) over.add(name);
}

async function fireEach(): Promise<void> {
  await complete();
  // As they are from the start.
  await comes("taken_out", "drift", "certificate");
  replaceFiles(files, renewed);
  await admin.expectOk("PATCH", "/api/backends/idle", { draining: false });
  using database = openDatabase();
  database.run(
    `UPDATE reconciliation_backend_day SET counted_output_tokens = generated_tokens WHERE day = ${dayNumberOf(Date.now())}`,
  );
  await goes("taken_out", "drift", "certificate");
  await failBackups();
  await haveNewerSchema();
  await haveOtherUsers();

  // Slow since the seeds, until they are ten minutes old.
  await comes("backend_slow");
  await pushGpuSample();
  await fillDisk();
  await awayFromPostgres();

  // Prometheus sees an increase only after the first slow one.
  const slow = [complete({ script: "slow-head=33s" }), complete({ script: "slow-head=38s" })];
  await blockEventLoop(() => comes("TollgateEventLoopDelay"));
  await useUpDescriptors(400, () => comes("descriptors"));
  await goes("descriptors");
  await lockDatabase(() => comes("database_away", "counts_waiting", "limits_by_share"));
  await goes("database_away", "counts_waiting", "limits_by_share");
  await Promise.all(slow);
  await comes("TollgateFirstByteSlow");

  writeFileSync(modelsFile, models.replace('"models"', '"modells"'));
  await comes("models_file_refused");
  writeFileSync(modelsFile, models);
  await goes("models_file_refused");

  await comes("gpu_silent");
  await pushGpuSample();
  await goes("gpu_silent");

  const running = Array.from({ length: 3 }, () => complete({ model: "q", script: "slow-head=5s" }));
  await comes("queue_refuses");
  await Promise.all(running);

  for (const backend of backends) backend.stop();
  const failing = setInterval(() => void complete(), 200);
  await comes("backend_out", "backend_failing");
  clearInterval(failing);
  backends = ports.map((port) => startSimulator({ port }));
  await goes("backend_out");

  await refuseCounts(() => comes("counts_refused"));
  // It goes with the processes that know it.
  for (let round = 0; round < 2; round++) await replaceChildren();
  await comes("child_replaced");
  await goes(
    "counts_refused",
    "queue_refuses",
    "user_source_refuses",
    "backend_failing",
    "backend_slow",
    "child_replaced",
  );

  // The other one runs.
  onPostgres.child.kill("SIGKILL");
  await comes("TollgateDown");
}

function setAhead(byMs: number): void {
  aheadMs += byMs;
  // Whole at any time that it is read.
  writeFileSync(`${aheadFile}.new`, String(aheadMs));
  renameSync(`${aheadFile}.new`, aheadFile);
}

/** Each is tried again after an hour of its clock, which steps over that. */
async function failBackups(): Promise<void> {
  const again = 61 * minute;
  await comes("backup_failed");
  mkdirSync(backupDir);
  Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=64k", "none", backupDir]);
  setAhead(again);
  await comes("backup_skipped", "clock_stepped");
  await goes("backup_failed");
  Bun.spawnSync(["umount", backupDir]);
  setAhead(again);
  await goes("backup_skipped");
  renameSync(backupDir, `${backupDir} away`);
  setAhead(37 * 60 * minute);
  await comes("backup_old");
  renameSync(`${backupDir} away`, backupDir);
  setAhead(again);
  await goes("backup_old");
  // An hour, in steps that are none.
  const passing = setInterval(() => setAhead(40_000), 1000);
  await goes("clock_stepped");
  clearInterval(passing);
}

async function haveNewerSchema(): Promise<void> {
  using database = openDatabase();
  const at = Date.now();
  database.run("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('newer', ?)", [at]);
  await comes("schema_newer");
  database.run("DELETE FROM __drizzle_migrations WHERE created_at = ?", [at]);
  await goes("schema_newer");
}

async function haveOtherUsers(): Promise<void> {
  const rules = { users_from: "open-webui", users_secret: "0123456789abcdef0123456789abcdef", users_max: 1 };
  const { id, key: apiKey } = await admin.createKey("chat", rules);
  await complete({ apiKey, headers: { "x-openwebui-user-jwt": "of.another.secret" } });
  await admin.expectOk("POST", "/api/users", { key_id: id, external: "first" });
  await comes("user_source_refuses", "users_nearly_full");
  await admin.expectOk("PATCH", `/api/keys/${id}`, { users_max: 10 });
  await goes("users_nearly_full");
}

async function fillDisk(): Promise<void> {
  const filler = join(dataDir, "filler");
  Bun.spawnSync(["sh", "-c", `cat /dev/zero > ${filler}`], { stderr: "ignore" });
  await comes("disk");
  // One that starts into it serves.
  await replaceChildren(1);
  await complete();
  rmSync(filler);
  await goes("disk");
}

async function awayFromPostgres(): Promise<void> {
  const { url: at } = onPostgres;
  // A key that is not known yet is refused while the database is away.
  await complete({ at, apiKey: postgresKey });
  await postgres.stop();
  const asking = setInterval(() => void complete({ at, apiKey: postgresKey }), 1000);
  await comes("database_away", "counts_waiting", "limits_by_share");
  await Bun.sleep(2 * minute);
  clearInterval(asking);
  await postgres.start();
  await goes("database_away", "counts_waiting", "limits_by_share");
  const { past } = await onPostgres.admin.expectOk<{ past: { kind: string; what: string }[] }>("GET", "/api/states");
  process.stdout.write(`        ${past.find(({ kind }) => kind === "database_away")?.what}\n`);
}

async function replaceChildren(howMany = 2): Promise<void> {
  const before = await pollUntil(() => {
    const all = childrenOf(onDisk.child.pid);
    return all.length === 2 && all;
  });
  for (const child of before.slice(0, howMany)) process.kill(child, "SIGKILL");
  const isNew = (child: number): boolean => !before.slice(0, howMany).includes(child);
  await pollUntil(() => childrenOf(onDisk.child.pid).filter(isNew).length === 2, deadlineMs);
  await pollUntil(async () => (await fetch(`${url}/healthz`)).ok, deadlineMs);
}

/** @returns once the response or its failure is there */
async function complete({ at = url, model = "m", script = "", apiKey = key, headers: more = {} } = {}): Promise<void> {
  const headers = { "x-api-key": apiKey, "content-type": "application/json", "x-simulate": script, ...more };
  const body = { model, stream: true, max_tokens: 3, messages: [{ role: "user", content: "Hi" }] };
  await fetch(`${at}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(body) }).then(
    (response) => response.text(),
    () => "",
  );
}

async function pushGpuSample(): Promise<void> {
  await fetch(`${url}/api/gpu-stats`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: JSON.stringify({ host: "rack", gpus: [{ gpu_id: 0, name: "GPU", power_draw_w: 100 }] }),
  });
}

/** Again and again: a scrape that comes meanwhile may run out of time, and then takes the delay with it. */
async function blockEventLoop(meanwhile: () => Promise<unknown>): Promise<void> {
  const block = setInterval(() => {
    const all = childrenOf(onDisk.child.pid);
    for (const child of all) process.kill(child, "SIGSTOP");
    setTimeout(() => {
      for (const child of all) process.kill(child, "SIGCONT");
    }, 700);
  }, 3000);
  await meanwhile();
  clearInterval(block);
  await Bun.sleep(1000);
}

async function useUpDescriptors(connections: number, meanwhile: () => Promise<unknown>): Promise<void> {
  const idle = await Promise.all(Array.from({ length: connections }, openConnection));
  await meanwhile();
  for (const socket of idle) socket.destroy();
}

function openConnection(): Promise<Socket> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => {
      // The kernel hands over no connection before its first byte.
      socket.write(`GET /healthz HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
      resolve(socket);
    });
    // The program refuses some when it has no descriptor left.
    socket.on("error", () => resolve(socket));
  });
}

function openDatabase(): Database {
  const database = new Database(join(dataDir, "tollgate.db"));
  database.run("PRAGMA busy_timeout = 5000");
  return database;
}

async function lockDatabase(meanwhile: () => Promise<unknown>): Promise<void> {
  using database = openDatabase();
  database.run("BEGIN IMMEDIATE");
  const asking = setInterval(() => void complete({ apiKey: limitedKey }), 500);
  await meanwhile();
  clearInterval(asking);
  database.run("ROLLBACK");
}

/** The first counts are staged; those after the next fold, within a minute, are refused at once. */
async function refuseCounts(meanwhile: () => Promise<unknown>): Promise<void> {
  using database = openDatabase();
  database.run("CREATE TRIGGER refuse BEFORE INSERT ON usage_minute BEGIN SELECT RAISE(ABORT, 'no'); END");
  const counting = setInterval(() => void complete(), 100);
  await meanwhile();
  clearInterval(counting);
  database.run("DROP TRIGGER refuse");
}
