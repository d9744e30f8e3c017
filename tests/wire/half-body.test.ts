import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

let backend: Simulator;
let gate: Tollgate;
beforeAll(async () => {
  backend = startSimulator();
  gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url, PROXY_NONSTREAM_READ_TIMEOUT: "0.4" });
});
beforeEach(() => backend.clear());
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  backend.stop();
});

/** Sends a head that promises more than comes. */
async function begin(framing: string, begun: string, type = "application/json"): Promise<RawClient> {
  const client = await connectRaw(gate.url);
  client.send(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nx-api-key: ${gate.key}\r\nContent-Type: ${type}\r\n${framing}\r\n\r\n${begun}`,
  );
  return client;
}

describe("a client that sends half a body and then nothing", () => {
  test.each([
    ["of a known length", "Content-Length: 100", '{"model":'],
    ["in chunks", "Transfer-Encoding: chunked", '9\r\n{"model":\r\n'],
  ])("%s gets a 408 in the end, and the backend hears nothing of it", async (_, framing, begun) => {
    const client = await begin(framing, begun);
    expect((await client.head()).status).toBe(408);
    expect(await client.json()).toMatchObject({
      type: "error",
      error: { type: "timeout_error", code: "request_timeout" },
    });
    expect(backend.requests()).toEqual([]);
    expect(await gate.waitForLog(({ code }) => code === "request_timeout")).toMatchObject({
      status: 408,
      outcome: "refused",
    });
    client.close();
  });

  test("of a kind that is not held gets a 504, and the backend's request ends", async () => {
    const client = await begin("Content-Length: 100", "half of it", "application/octet-stream");
    expect((await client.head()).status).toBe(504);
    await backend.waitFor(({ type }) => type === "closed" || type === "aborted");
    client.close();
  });

  test("and sends the rest after all, in time, is served", async () => {
    const client = await begin("Content-Length: 44", '{"model":"m",');
    await Bun.sleep(50);
    client.send('"messages":[{"role":"user"}]  }');
    expect((await client.head()).status).toBe(200);
    client.close();
  });
});
