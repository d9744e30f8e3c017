import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { type Program, startProgram } from "../support/program.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { until } from "../support/until.ts";

let backend: Simulator;
let program: Program;
let key: string;
beforeAll(async () => {
  backend = startSimulator({ keepBodyBytes: 0 });
  program = await startProgram({ PROXY_UPSTREAM_URL: backend.url, ADMIN_PASSWORD: "password", LOG_LEVEL: "error" });
  ({ key } = await (await logIn(program.adminUrl, "admin", "password")).createKey("test"));
});
afterAll(async () => {
  await program.stop();
  backend.stop();
});

const streamed = JSON.stringify({
  model: "m",
  stream: true,
  max_tokens: 3,
  messages: [{ role: "user", content: "Hi" }],
});

async function post(script: string, options: { keepBody?: boolean } = {}): Promise<RawClient> {
  const client = await connectRaw(program.url, options);
  const headers = { "x-api-key": key, "Content-Type": "application/json", "x-simulate": script };
  client.request("POST", "/v1/chat/completions", headers, streamed);
  return client;
}

describe("one process", () => {
  test("holds 3,000 streams open at once, and each gets its frames", async () => {
    backend.clear();
    const clients: RawClient[] = [];
    for (let opened = 0; opened < 3000; opened += 100) {
      clients.push(...(await Promise.all(Array.from({ length: 100 }, () => post("gap=forever@2")))));
    }
    for (const client of clients) expect(await client.nextEvent()).toStartWith("data: {");
    expect(backend.stats().open).toBe(3000);
    for (const client of clients) client.reset();
    await until(() => backend.stats().open === 0);
  }, 120_000);
});
