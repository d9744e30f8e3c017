import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { commandLine, startProgram } from "../support/program.ts";
import { findFreePort } from "../support/free-port.ts";
import { connectRaw } from "../support/raw-client.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { valueOf } from "../telemetry/open-metrics.ts";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());
const program = shared(() =>
  startProgram({
    PROXY_UPSTREAM_URL: backend.url,
    ADMIN_PASSWORD: "password",
    METRICS_TOKEN: "scraper",
    LOG_FORMAT: "json",
  }),
);

const prlimit = Bun.which("prlimit");

test.skipIf(prlimit === null)(
  "a program at its limit of open files refuses some requests, and afterwards serves and counts normally",
  async () => {
    const admin = await logIn(program.adminUrl, "admin", "password");
    const { key } = await admin.createKey("test");
    const body = JSON.stringify({
      model: "m",
      stream: true,
      max_tokens: 3,
      messages: [{ role: "user", content: "Hi" }],
    });
    const headers = { "x-api-key": key, "Content-Type": "application/json", "x-simulate": "usage=3,4; gap=2s@2" };
    /** The status of a complete response, else 0. */
    const post = async (): Promise<number> => {
      const client = await connectRaw(program.url);
      client.request("POST", "/v1/messages", headers, body);
      const isWhole = (await client.ended()) === "complete";
      client.close();
      return isWhole ? (await client.head()).status : 0;
    };
    const open = readdirSync(`/proc/${program.pid}/fd`).length;
    Bun.spawnSync([String(prlimit), "--pid", String(program.pid), `--nofile=${open + 21}:`]);

    const statuses = await Promise.all(Array.from({ length: 40 }, post));
    const served = statuses.filter((status) => status === 200).length;
    // A connection that cannot be accepted waits in the kernel's queue. After an accept, no descriptor may be left for
    // the connection to the backend.
    expect(statuses).toContain(503);
    expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);

    // It says that it is this server, not the backend.
    const failed = statuses.filter((status) => status === 503).length;
    const lines = () =>
      program
        .stdout()
        .split("\n")
        .filter((line) => line.includes('"cause":"EMFILE"'));
    await pollUntil(() => lines().length > failed);
    expect(lines().filter((line) => line.includes("Request ended"))).toHaveLength(failed);
    expect(lines().filter((line) => line.includes("Out of file descriptors"))).toHaveLength(1);

    expect(await post()).toBe(200);
    const scraper = { authorization: "Bearer scraper" };
    const metrics = await (await fetch(`${program.adminUrl}/metrics`, { headers: scraper })).text();
    expect(metrics).toContain(`outcome="refused",status="5xx"} ${failed}\n`);
    expect(metrics).not.toContain("tollgate_upstream_errors_total{");
    expect(metrics).toContain(`process_max_fds ${open + 21}\n`);
    const [counted] = await admin.listKeys();
    expect(counted).toMatchObject({
      total_request_count: served + 1,
      total_input_tokens: 3 * (served + 1),
      total_output_tokens: 4 * (served + 1),
    });
  },
);

test.skipIf(prlimit === null)(
  "a program whose idle connections take every descriptor still serves its metrics, and says so in them",
  async () => {
    const crowded = await startProgram({ METRICS_TOKEN: "scraper", PROXY_UPSTREAM_URL: backend.url });
    Bun.spawnSync([String(prlimit), "--pid", String(crowded.pid), "--nofile=256:"]);
    const scraper = await connectRaw(crowded.adminUrl);
    const scrape = async (): Promise<string> => {
      scraper.request("GET", "/metrics", { authorization: "Bearer scraper" });
      expect((await scraper.head()).status).toBe(200);
      const text = await scraper.text();
      scraper.nextResponse();
      return text;
    };
    expect(valueOf(await scrape(), "process_open_fds")).toBeLessThan(200);

    // The kernel hands over no connection before its first byte.
    const idle = await Promise.all(
      Array.from({ length: 300 }, async () => {
        const client = await connectRaw(crowded.adminUrl);
        client.request("GET", "/healthz");
        return client;
      }),
    );
    await pollUntil(() => readdirSync(`/proc/${crowded.pid}/fd`).length === 256);
    const text = await scrape();
    expect([valueOf(text, "process_open_fds"), valueOf(text, "process_max_fds")]).toEqual([256, 256]);
    expect(valueOf(text, "process_resident_memory_bytes")).toBeGreaterThan(1e7);
    for (const collector of ["process_resident_memory_bytes", "process_max_fds"]) {
      expect(valueOf(text, `tollgate_collector_errors_total{collector="${collector}"}`)).toBe(1);
    }

    for (const client of idle) client.close();
    await pollUntil(async () => (valueOf(await scrape(), "process_open_fds") ?? 256) < 200);
    await crowded.stop();
  },
);

test("a limit of file descriptors under 4096 is warned of at start", async () => {
  using folder = createTempFolder();
  const start = (limit: number) =>
    Bun.spawn(["sh", "-c", `ulimit -n ${limit}; exec "$@"`, "sh", ...commandLine(["serve"])], {
      cwd: folder.path,
      env: {
        PATH: process.env["PATH"] ?? "",
        DATA_DIR: folder.path,
        PORT: String(findFreePort()),
        PROXY_UPSTREAM_URL: "http://127.0.0.1:1",
        ADMIN_PASSWORD: "password",
        LOG_FORMAT: "json",
      },
      stdout: "pipe",
    });
  for (const [limit, warnings] of [
    [4095, [{ level: "warn", limit: 4095, recommended: 4096 }]],
    [4096, []],
  ] as const) {
    const child = start(limit);
    let text = "";
    const decoder = new TextDecoder();
    for await (const bytes of child.stdout) {
      text += decoder.decode(bytes, { stream: true });
      // Logged after the limit was looked at.
      if (text.includes("ECONNREFUSED")) child.kill();
    }
    const lines = text.split("\n").filter((line) => line.includes("file descriptors"));
    expect(lines.map((line) => JSON.parse(line))).toMatchObject(warnings);
  }
});
