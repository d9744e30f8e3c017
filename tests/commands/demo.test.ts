import { beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { createServer } from "node:net";
import { personas } from "../../src/demo/personas.ts";
import { type AdminClient, logIn } from "../support/admin-client.ts";
import { whyNoCurl } from "../support/curl.ts";
import { commandLine, runProgram, startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";

/** A value in the introduction, such as that of `    Password   k3vhs-w8dnq-xa2mr-7tepc`. */
const valueOf = (text: string, label: string): string => new RegExp(`${label} +(.*)\n`).exec(text)?.[1] ?? "";

describe("tollgate demo", () => {
  const temporary = shared(() => createTempFolder());
  const program = shared(() =>
    startProgram({ TMPDIR: temporary.path, LOG_LEVEL: "info", LOG_FORMAT: "json" }, ["demo"]),
  );
  let admin: AdminClient;
  let introduction: string;
  beforeAll(async () => {
    introduction = await pollUntil(() => program.stdout().includes("Ctrl-C") && program.stdout());
    admin = await logIn(program.adminUrl, valueOf(introduction, "Username"), valueOf(introduction, "Password"));
  });

  test.skipIf(whyNoCurl !== undefined)("prints a curl command that streams a completion", async () => {
    const line = /^curl .*$/m.exec(introduction)?.[0] ?? "";
    const shell = Bun.spawn(["bash", "-c", line], { stdout: "pipe", stderr: "ignore" });
    const response = await new Response(shell.stdout).text();
    expect(await shell.exited).toBe(0);
    expect(response).toStartWith("data: {");
    expect(response).toEndWith("data: [DONE]\n\n");
    expect(response.split("\n\n").length).toBeGreaterThan(20);
    const key = (await admin.listKeys()).find(({ name }) => name === "Your key");
    expect(key?.total_request_count).toBe(1);
    expect(key?.total_output_tokens).toBeGreaterThan(0);
  });

  test("prints the data folder, and an address at which browsers keep the session", () => {
    expect(introduction).toContain("This is a demo");
    const [folder] = readdirSync(temporary.path);
    expect(introduction).toContain(`Ctrl-C ends it and deletes ${temporary.path}/${folder}\n`);
    expect(valueOf(introduction, "Console")).toBe(program.adminUrl.replace("127.0.0.1", "localhost"));
  });

  test("prints seven lines", () => {
    expect(introduction.split("\n").filter((line) => /\S/.test(line) && !line.startsWith("{"))).toHaveLength(7);
  });

  test("shows thirty days of usage and power", async () => {
    type Points = { points: { bucket_start: string; recorded_at: string }[] };
    const { points } = await admin.expectOk<Points>("GET", "/api/usage/history?days=30&bucket_minutes=1440");
    expect(new Set(points.map(({ bucket_start: start }) => start)).size).toBeGreaterThanOrEqual(30);
    const power = await admin.expectOk<Points>("GET", "/api/gpu-stats/power-history?days=30&bucket_minutes=1440");
    expect(power.points.length).toBeGreaterThanOrEqual(30);
    const rows = await admin.expectOk<unknown[]>("GET", "/api/usage/daily?days=30");
    expect(rows.length).toBeGreaterThan(100);
  });

  test("shows the requests, latencies, failures and costs of past days", async () => {
    type Log = { requests: { ended_at: string; code: string | null }[] };
    const yesterday = new Date(Date.now() - 23 * 3_600_000).toISOString();
    const { requests } = await admin.expectOk<Log>("GET", `/api/requests?until=${yesterday}&limit=5`);
    expect(requests).toHaveLength(5);
    const failed = await admin.expectOk<Log>("GET", "/api/requests?failed=true&limit=200");
    expect(new Set(failed.requests.map(({ code }) => code)).size).toBeGreaterThan(2);
    type Points = { points: { request_count: number; failed_count?: number }[]; totals: unknown[] };
    const latency = await admin.expectOk<Points>("GET", "/api/latency?hours=720&bucket_minutes=1440&by=model");
    expect(latency.totals).toHaveLength(3);
    const failures = await admin.expectOk<Points>("GET", "/api/failures?hours=720&bucket_minutes=1440");
    expect(failures.points.filter((day) => (day.failed_count ?? 0) > 0).length).toBeGreaterThanOrEqual(30);
    type Models = { currency: string; rows: { cost: number | null; cost_is_partial: boolean }[] };
    const models = await admin.expectOk<Models>("GET", "/api/usage/costs?by=model");
    expect(models.rows.map(({ cost, cost_is_partial: isPartial }) => [(cost ?? 0) > 0, isPartial])).toEqual(
      models.rows.map(() => [true, false]),
    );
    type Settings = { settings: { name: string; value: string | null }[] };
    const { settings } = await admin.expectOk<Settings>("GET", "/api/settings");
    expect(settings.find(({ name }) => name === "PROXY_ALIAS_MODEL")?.value).toBe("tollgate-demo");
    type Energy = { points: { measured_minutes: number }[] };
    const energy = await admin.expectOk<Energy>("GET", "/api/gpu-stats/history?days=30&bucket_minutes=1440");
    expect(energy.points.filter((day) => day.measured_minutes === 1440).length).toBeGreaterThanOrEqual(29);
  });

  test("shows current samples of GPUs under load", async () => {
    type Sample = { recorded_at: string; utilization_pct: number };
    const samples = await pollUntil(async () => {
      const latest = await admin.expectOk<Sample[]>("GET", "/api/gpu-stats");
      return latest.length === 4 && latest.every((one) => one.utilization_pct > 0) && latest;
    });
    for (const { recorded_at: at } of samples) expect(Date.now() - Date.parse(at)).toBeLessThan(20_000);
  });

  test("has clients whose requests succeed", async () => {
    const requests = () =>
      program
        .stdout()
        .split("\n")
        .filter((line) => line.includes('"message":"Request ended"') && line.endsWith("}"))
        .map((line) => JSON.parse(line) as { keyId: number; status?: number });
    // How many requests the others send depends on the time of day. Keys are numbered in the order of the personas.
    const supportDesk = personas.findIndex(({ traffic }) => traffic.hours === "always") + 1;
    await pollUntil(() => requests().some(({ keyId }) => keyId === supportDesk), 60_000);
    expect(requests().filter(({ status }) => status !== undefined && status !== 200)).toEqual([]);
  });

  test("has an inactive key", async () => {
    const off = (await admin.listKeys()).filter((key) => !key.is_active);
    expect(off.map(({ name }) => name)).toEqual(["Evaluation of last month"]);
    expect(off[0]?.total_request_count).toBeGreaterThan(0);
  });

  test("serves the demo models and the non-thinking variant", async () => {
    const models = await fetch(`${program.url}/v1/models`, {
      headers: { authorization: `Bearer ${valueOf(introduction, "API key")}` },
    });
    const { data } = (await models.json()) as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).toEqual([
      "tollgate-demo",
      "tollgate-demo-small",
      "tollgate-demo-embedding",
      "tollgate-demo-nonthinking",
    ]);
  });

  test("exits with status 0 on Ctrl-C, and leaves no data", async () => {
    expect(await program.stop("SIGINT")).toBe(0);
    expect(readdirSync(temporary.path).filter((name) => name.startsWith("tollgate-demo-"))).toEqual([]);
    expect(program.stderr()).toBe("");
  });
});

describe("tollgate demo on a port that is in use", () => {
  async function occupyPort(port: number): Promise<{ port: number; close: () => void }> {
    const other = createServer();
    await new Promise<void>((resolve) => {
      // If another program uses it, that is fine too.
      other.once("error", () => resolve());
      other.listen(port, "127.0.0.1", resolve);
    });
    return { port: (other.address() as { port: number } | null)?.port ?? port, close: () => other.close() };
  }

  test("reports it in one line if PORT is set", async () => {
    const { port, close } = await occupyPort(0);
    const { status, stderr } = await runProgram(["demo"], { PORT: String(port) });
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: `tollgate: port ${port} on 127.0.0.1 is in use by another program\n`,
    });
    close();
  });

  test("uses a free port if PORT is not set", async () => {
    const { close } = await occupyPort(8080);
    using folder = createTempFolder();
    const env = { PATH: process.env["PATH"] ?? "", HOME: folder.path, TMPDIR: folder.path };
    const child = Bun.spawn(commandLine(["demo"]), { cwd: folder.path, env, stdout: "pipe", stderr: "inherit" });
    let introduction = "";
    for await (const bytes of child.stdout) {
      introduction += new TextDecoder().decode(bytes);
      if (introduction.includes("Ctrl-C")) break;
    }
    const url = valueOf(introduction, "Console");
    expect(url).toMatch(/^http:\/\/localhost:\d+$/);
    expect(url).not.toEndWith(":8080");
    expect((await fetch(`${url.replace("localhost", "127.0.0.1")}/healthz`)).status).toBe(200);
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
    close();
  });
});
