// Lets a real Prometheus scrape Tollgate, causes each fault that an alert is for, and prints when each alert fired. Takes
// two minutes, and root and Debian's package `prometheus`; `rules.test.ts` checks the times that this shortens.
//   unshare --mount bun tests/watching/fire-alerts.ts
import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { startSimulator } from "../support/simulator/simulator.ts";
import { alerts, alertsYaml } from "../../src/watching/alerts.ts";
import { logIn } from "../support/admin-client.ts";
import { findFreePort } from "../support/free-port.ts";
import { pollUntil } from "../support/poll-until.ts";
import { commandLine } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";

const deadlineMs = 150_000;
const metricsToken = "scrape-me";
using folder = createTempFolder();
const backends = [startSimulator(), startSimulator()];
const dataDir = folder.file("data");
mkdirSync(dataDir);
// A file system of its own, so that it can be nearly full.
const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=60m", "none", dataDir], { stderr: "inherit" });
if (!mounted.success) process.exit(1);
// Of an only backend, no state tells that it is out.
await Bun.write(
  folder.file("models.yaml"),
  JSON.stringify({
    backends: { left: { url: backends[0]?.url }, right: { url: backends[1]?.url } },
    models: { m: { backends: ["left", "right"] } },
  }),
);
const url = `http://127.0.0.1:${findFreePort()}`;
const program = Bun.spawn(["sh", "-c", 'ulimit -n 200 && exec "$@"', "sh", ...commandLine(["serve"])], {
  env: {
    PATH: process.env["PATH"] ?? "",
    DATA_DIR: dataDir,
    PORT: new URL(url).port,
    MODELS_FILE: folder.file("models.yaml"),
    ADMIN_PASSWORD: "password",
    METRICS_TOKEN: metricsToken,
    LOG_LEVEL: "error",
  },
  stdout: "ignore",
  stderr: "inherit",
});
await pollUntil(async () => (await fetch(`${url}/healthz`)).ok);
const admin = await logIn(url, "admin", "password");
const { key } = await admin.createKey("test");
const { key: limitedKey } = await admin.createKey("limited", { requests_per_minute: 1000 });
const prometheusUrl = `http://127.0.0.1:${findFreePort()}`;
const prometheus = await startPrometheus();
const startedAt = performance.now();
const fired = new Set<string>();
const watch = setInterval(() => void collectFired(), 500);

try {
  await fireEach();
} finally {
  clearInterval(watch);
  for (const child of [program, prometheus]) child.kill("SIGKILL");
  await prometheus.exited;
  Bun.spawnSync(["umount", dataDir]);
}

// Without HTTPS there is no certificate.
fired.add("TollgateCertificateExpires");
const missing = alerts.map(({ name }) => name).filter((name) => !fired.has(name));
process.stdout.write(missing.length === 0 ? "each alert fired\n" : `did not fire: ${missing.join(", ")}\n`);
process.exit(missing.length === 0 ? 0 : 1);

async function startPrometheus(): Promise<Bun.Subprocess> {
  // Each alert waits long enough to be sure. Here only one waits, for the first scrape.
  const rules = alertsYaml().replaceAll(/for: .+/g, "for: 0s");
  await Bun.write(folder.file("alerts.yaml"), rules.replace(/(?<=TollgateDown\n.*\n.*for: ).*/, "15s"));
  const configuration = {
    global: { scrape_interval: "1s", evaluation_interval: "1s" },
    rule_files: ["alerts.yaml"],
    scrape_configs: [
      {
        job_name: "tollgate",
        authorization: { credentials: metricsToken },
        static_configs: [{ targets: [new URL(url).host] }],
      },
    ],
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

async function collectFired(): Promise<void> {
  const response = await fetch(`${prometheusUrl}/api/v1/alerts`).catch(() => undefined);
  if (response === undefined) return;
  const { data } = (await response.json()) as {
    data: { alerts: { state: string; labels: { alertname: string }; value: string }[] };
  };
  for (const { state, labels, value } of data.alerts) {
    if (state !== "firing" || fired.has(labels.alertname)) continue;
    fired.add(labels.alertname);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(0).padStart(4);
    process.stdout.write(`${seconds} s  ${labels.alertname} (${Number(value).toPrecision(4)})\n`);
  }
}

async function fireEach(): Promise<void> {
  await complete();
  // The file system is smaller than the limit from the start.
  await isFired("TollgateDisk");
  // On a busy machine, the start itself makes the event loop late.
  const others = [...fired].filter((name) => !["TollgateEventLoopDelay", "TollgateDisk"].includes(name));
  if (others.length > 0) throw new Error(`fired without their fault: ${others.join(", ")}`);

  await pushGpuSample();
  // Prometheus sees an increase only after the first slow one.
  const slow = [complete("slow-head=33s"), complete("slow-head=38s")];
  await blockEventLoop(() => isFired("TollgateEventLoopDelay"));
  await useUpDescriptors(150, () => isFired("TollgateDescriptors"));
  await lockDatabase(() => isFired("TollgateLedgerLag", "TollgateCommitFailures", "TollgateLimitsDegraded"));
  await refuseCounts(() => isFired("TollgateCountsRefused"));
  await Promise.all(slow);
  await isFired("TollgateFirstByteSlow");

  for (const backend of backends) backend.stop();
  const failing = setInterval(() => void complete(), 200);
  await isFired("TollgateBackendDown", "TollgateBackendOut", "TollgateAllBackendsOut", "TollgateUpstreamErrors");
  clearInterval(failing);
  await isFired("TollgateGpuStale");
  // More than there are.
  await useUpDescriptors(250, () => isFired("TollgateMetricsStale"));
  program.kill("SIGKILL");
  await isFired("TollgateDown");
}

async function isFired(...names: string[]): Promise<void> {
  await pollUntil(() => names.every((name) => fired.has(name)), deadlineMs);
}

/** @returns once the response or its failure is there */
async function complete(script = "", apiKey = key): Promise<void> {
  const headers = { "x-api-key": apiKey, "content-type": "application/json", "x-simulate": script };
  const body = { model: "m", stream: true, max_tokens: 3, messages: [{ role: "user", content: "Hi" }] };
  await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(body) }).then(
    (response) => response.text(),
    () => "",
  );
}

async function pushGpuSample(): Promise<void> {
  await fetch(`${url}/api/gpu-stats`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: JSON.stringify({ gpus: [{ gpu_id: 0, name: "GPU", power_draw_w: 100 }] }),
  });
}

/** Again and again: a scrape that comes meanwhile may run out of time, and then takes the delay with it. */
async function blockEventLoop(meanwhile: () => Promise<void>): Promise<void> {
  const block = setInterval(() => {
    program.kill("SIGSTOP");
    setTimeout(() => program.kill("SIGCONT"), 700);
  }, 3000);
  await meanwhile();
  clearInterval(block);
}

async function useUpDescriptors(connections: number, meanwhile: () => Promise<void>): Promise<void> {
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

async function lockDatabase(meanwhile: () => Promise<void>): Promise<void> {
  using database = openDatabase();
  database.run("BEGIN IMMEDIATE");
  await Promise.all([complete(), complete("", limitedKey)]);
  await meanwhile();
  database.run("ROLLBACK");
}

/** The first counts are staged; those after the next fold, within a minute, are refused at once. */
async function refuseCounts(meanwhile: () => Promise<void>): Promise<void> {
  using database = openDatabase();
  database.run("CREATE TRIGGER refuse BEFORE INSERT ON usage_minute BEGIN SELECT RAISE(ABORT, 'no'); END");
  const counting = setInterval(() => void complete(), 100);
  await meanwhile();
  clearInterval(counting);
  database.run("DROP TRIGGER refuse");
}
