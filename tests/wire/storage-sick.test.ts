import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";
import { until } from "../support/until.ts";

let backend: Simulator;
beforeAll(() => {
  backend = startSimulator();
});
afterAll(() => backend.stop());

const ask = (gate: Tollgate): Promise<Response> =>
  fetch(`${gate.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "x-api-key": gate.key, "content-type": "application/json", "x-simulate": "usage=3,4" },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }] }),
  });

describe("while another program holds the database", () => {
  test("requests are served, counts wait and are seen to wait, and then they are written, each once", async () => {
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
    expect((await ask(gate)).status).toBe(200);
    // The first one waits its second; nobody after it waits for a disk that is known to be sick.
    expect(performance.now() - begun).toBeLessThan(5000);
    await gate.waitForLog(({ message }) => String(message).includes("wait in memory"));
    for (const response of await Promise.all(Array.from({ length: 50 }, () => ask(gate)))) {
      expect(response.status).toBe(200);
      await response.text();
    }
    expect(await metric("tollgate_ledger_waiting_requests")).toBe(51);
    expect(await metric("tollgate_ledger_waiting_keys")).toBe(1);

    other.run("ROLLBACK");
    other.close();
    await until(async () => (await metric("tollgate_ledger_waiting_requests")) === 0);
    expect(await gate.counted()).toMatchObject({
      total_request_count: 51,
      total_input_tokens: 153,
      total_output_tokens: 204,
    });
    await gate.waitForLog(({ message }) => String(message).includes("again"));
    expect(await metric("tollgate_storage_commit_failures_total")).toBeGreaterThan(0);
    expect(await metric("tollgate_storage_commit_duration_seconds_count")).toBeGreaterThan(0);
  });
});
