import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { alerts, alertsYaml } from "../../src/watching/alerts.ts";
import { logIn } from "../support/admin-client.ts";
import { findFreePort } from "../support/free-port.ts";
import { commandLine } from "../support/program.ts";
import { pollUntil } from "../support/poll-until.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";

const prometheus = Bun.which("prometheus");
/** A file system of its own, so that it can be nearly full; and few descriptors. */
const confined = 'mount -t tmpfs -o size=60m none "$DATA_DIR" && ulimit -n 200 && exec "$@"';
const canConfine = Bun.which("unshare") !== null && Bun.spawnSync(["unshare", "--mount", "true"]).success;

const deadlineMs = 150_000;

/** Takes two minutes: one alert waits for GPU samples that stay away for one. `.ci/alerts` runs it. */
describe.skipIf(prometheus === null || !canConfine)("a real Prometheus that scrapes a program with every fault", () => {
  let folder: TempFolder;
  let program: Bun.Subprocess;
  let server: Bun.Subprocess;
  let prometheusUrl: string;
  let url: string;
  let key: string;
  const simulator = startSimulator();
  const fired = new Set<string>();
  let watch: Timer;

  beforeAll(async () => {
    folder = createTempFolder();
    url = `http://127.0.0.1:${findFreePort()}`;
    prometheusUrl = `http://127.0.0.1:${findFreePort()}`;
    program = startConfined();
    await pollUntil(async () => (await fetch(`${url}/healthz`)).ok);
    ({ key } = await (await logIn(url, "admin", "password")).createKey("test"));
    server = await startPrometheus();
    watch = setInterval(() => void collectFired(), 500);
  }, 60_000);
  afterAll(async () => {
    clearInterval(watch);
    for (const child of [program, server]) child.kill("SIGKILL");
    await server.exited;
    simulator.stop();
    folder.remove();
  });

  function startConfined(): Bun.Subprocess {
    const dataDir = folder.file("data");
    Bun.spawnSync(["mkdir", dataDir]);
    return Bun.spawn(["unshare", "--mount", "sh", "-c", confined, "sh", ...commandLine(["serve"])], {
      env: {
        PATH: process.env["PATH"] ?? "",
        DATA_DIR: dataDir,
        PORT: new URL(url).port,
        PROXY_UPSTREAM_URL: simulator.url,
        ADMIN_PASSWORD: "password",
        METRICS_TOKEN: "scrape-me",
        LOG_LEVEL: "error",
      },
      stdout: "ignore",
      stderr: "inherit",
    });
  }

  async function startPrometheus(): Promise<Bun.Subprocess> {
    // Each alert waits long enough to be sure. Here none does.
    await Bun.write(folder.file("alerts.yaml"), alertsYaml(alerts.map((alert) => ({ ...alert, for: "0s" }))));
    await Bun.write(
      folder.file("prometheus.yml"),
      `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: tollgate
    authorization: { credentials: scrape-me }
    static_configs: [{ targets: ["${new URL(url).host}"] }]
`,
    );
    const child = Bun.spawn(
      [
        prometheus ?? "",
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
    const body = (await response?.json()) as { data: { alerts: { state: string; labels: { alertname: string } }[] } };
    for (const { state, labels } of body.data.alerts) if (state === "firing") fired.add(labels.alertname);
  }

  const complete = (script = ""): Promise<number> =>
    fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/json", "x-simulate": script },
      body: JSON.stringify({ model: "m", stream: true, max_tokens: 3, messages: [{ role: "user", content: "Hi" }] }),
    }).then(
      async (response) => (await response.text()).length,
      () => 0,
    );

  const isFired = (...names: string[]) => pollUntil(() => names.every((name) => fired.has(name)), deadlineMs);

  test(
    "fires each alert once its fault is there, and no other",
    async () => {
      await complete();
      // The file system is smaller than the limit from the start.
      await isFired("TollgateDisk");
      expect([...fired]).toEqual(["TollgateDisk"]);

      await fetch(`${url}/api/gpu-stats`, {
        method: "POST",
        headers: { "x-api-key": key, "content-type": "application/json" },
        body: JSON.stringify({ gpus: [{ gpu_id: 0, name: "GPU", power_draw_w: 100 }] }),
      });
      // Prometheus sees an increase only after the first slow one.
      const slow = [complete("slow-head=33s"), complete("slow-head=38s")];

      program.kill("SIGSTOP");
      // Plays an event loop that is blocked.
      await Bun.sleep(1500);
      program.kill("SIGCONT");
      await isFired("TollgateEventLoopDelay");

      const idle = await Promise.all(Array.from({ length: 150 }, () => openConnection(url)));
      await isFired("TollgateDescriptors");
      for (const socket of idle) socket.destroy();

      await breakDatabase(async () => {
        await complete();
        await isFired("TollgateLedgerLag", "TollgateCommitFailures");
      });
      await refuseCounts(async () => {
        await complete();
        await isFired("TollgateCountsRefused");
      });
      await Promise.all(slow);
      await isFired("TollgateFirstByteSlow");

      simulator.stop();
      const failing = setInterval(() => void complete(), 200);
      await isFired("TollgateBackendDown", "TollgateUpstreamErrors");
      clearInterval(failing);

      await isFired("TollgateGpuStale");
      program.kill("SIGKILL");
      await isFired("TollgateDown");
      expect([...fired].toSorted()).toEqual(alerts.map(({ name }) => name).toSorted());
    },
    deadlineMs * 2,
  );

  /** In the program's file system. */
  const openDatabase = (): Database => new Database(`/proc/${program.pid}/root${folder.file("data/tollgate.db")}`);

  async function breakDatabase(meanwhile: () => Promise<void>): Promise<void> {
    using database = openDatabase();
    database.run("BEGIN IMMEDIATE");
    await meanwhile();
    database.run("ROLLBACK");
  }

  async function refuseCounts(meanwhile: () => Promise<void>): Promise<void> {
    using database = openDatabase();
    database.run("PRAGMA busy_timeout = 5000");
    database.run("CREATE TRIGGER refuse BEFORE INSERT ON usage_minute BEGIN SELECT RAISE(ABORT, 'no'); END");
    await meanwhile();
    database.run("DROP TRIGGER refuse");
  }
});

function openConnection(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => resolve(socket));
    // The program refuses some when it has no descriptor left.
    socket.on("error", () => resolve(socket));
  });
}
