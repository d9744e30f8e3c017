import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { type Program, startProgram } from "../support/program.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { until } from "../support/until.ts";

const megabyte = 1024 * 1024;
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
  test("stays flat against a client that stalls while the backend floods", async () => {
    const client = await post("flood", { keepBody: false });
    await client.head();
    client.pause();
    const before = program.rssBytes();
    let peak = before;
    for (let look = 0; look < 40; look++) {
      await Bun.sleep(50);
      peak = Math.max(peak, program.rssBytes());
    }
    client.reset();
    expect(peak - before).toBeLessThan(48 * megabyte);
    await until(() => backend.stats().open === 0);
  }, 60_000);

  test("passes a large answer through in constant memory", async () => {
    const before = program.rssBytes();
    const client = await connectRaw(program.url, { keepBody: false });
    client.request("GET", "/v1/files/1", { "x-api-key": key, "x-simulate": "body=400MB" });
    let peak = before;
    const watch = setInterval(() => (peak = Math.max(peak, program.rssBytes())), 20);
    expect(await client.ended()).toBe("complete");
    clearInterval(watch);
    expect(client.bodyBytes()).toBe(400 * megabyte);
    expect(peak - before).toBeLessThan(100 * megabyte);
    client.close();
  }, 120_000);

  test("passes a large upload through in constant memory, to a backend that is slow to read it", async () => {
    backend.clear();
    const before = program.rssBytes();
    let peak = before;
    const block = new Uint8Array(megabyte);
    const blocks = 300;
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        peak = Math.max(peak, program.rssBytes());
        if (sent++ === blocks) controller.close();
        else controller.enqueue(block);
      },
    });
    const response = await fetch(`${program.url}/v1/files`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/octet-stream", "x-simulate": "pause-body=1s" },
      body,
    });
    await response.body?.cancel();
    expect((await backend.nextRequest()).bodyBytes).toBe(blocks * megabyte);
    expect(peak - before).toBeLessThan(100 * megabyte);
  }, 120_000);
});
