import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import { hostileBodies } from "../fixtures/hostile-bodies.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

const megabyte = 1024 * 1024;
let backend: Simulator;
let gate: Tollgate;
beforeAll(async () => {
  backend = startSimulator();
  gate = await startTollgate({
    PROXY_UPSTREAM_URL: backend.url,
    PROXY_ALIAS_MODEL: "live",
    PROXY_ALIAS_REWRITE_ALL: "on",
    PROXY_HAN_GUARD: "off",
    MAX_OUTPUT_TOKENS: "9",
    MAX_BODY_BYTES: String(megabyte),
    MAX_HELD_BYTES: String(8 * megabyte),
  });
});
beforeEach(() => backend.clear());
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  backend.stop();
});

/** Announces a body of a megabyte and sends its first byte. */
async function hold(key: string): Promise<RawClient> {
  const client = await connectRaw(gate.url);
  client.send(
    `POST /v1/embeddings HTTP/1.1\r\nHost: h\r\nx-api-key: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${megabyte}\r\n\r\n{`,
  );
  return client;
}

/** Waits until all earlier requests have taken their share: a refused request is handled after them. */
async function settled(): Promise<void> {
  await (await fetch(`${gate.url}/v1/models`, { headers: { "x-api-key": "wrong" } })).text();
}

const small = (key: string): Promise<Response> =>
  fetch(`${gate.url}/v1/embeddings`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: '{"model":"m","input":"a"}',
  });

describe("held bodies", () => {
  test("take a quarter of the budget for one key, all of it for all, and give it back", async () => {
    const keys = await Promise.all(["a", "b", "c", "d", "e"].map((name) => gate.admin.createKey(name)));
    const [greedy, second, third, fourth, fifth] = keys.map(({ key }) => key);
    if (greedy === undefined || fifth === undefined) throw new Error("No keys");
    const clients = [await hold(greedy), await hold(greedy)];
    await settled();
    const refused = await small(greedy);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused.json()).toMatchObject({
      type: "error",
      error: { type: "rate_limit_error", code: "too_many_bytes_held" },
    });
    expect(backend.requests()).toEqual([]);
    // One key leaves room for the others.
    expect((await small(fifth)).status).toBe(200);

    for (const key of [second, third, fourth]) clients.push(await hold(key ?? ""), await hold(key ?? ""));
    await settled();
    expect((await small(fifth)).status).toBe(429);
    // A body that needs no rewrite is not held, so it needs no budget.
    const streamed = await fetch(`${gate.url}/v1/files`, {
      method: "PUT",
      headers: { "x-api-key": greedy },
      body: "x",
    });
    expect(streamed.status).toBe(200);

    for (const client of clients) client.close();
    await gate.waitForLog(
      () => gate.log.filter((entry) => entry["outcome"] === "client_left").length >= clients.length,
    );
    expect((await small(greedy)).status).toBe(200);
  });

  test("are refused above MAX_BODY_BYTES before they are read", async () => {
    const client = await connectRaw(gate.url);
    client.send(
      `POST /v1/x HTTP/1.1\r\nHost: h\r\nx-api-key: ${gate.key}\r\nContent-Type: application/json\r\nContent-Length: ${megabyte + 1}\r\n\r\n`,
    );
    expect((await client.head()).status).toBe(413);
    client.close();
  });
});

describe("a body that curl sends as a form", () => {
  test.each(["/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/v1/embeddings"])(
    "to %s is rewritten like any JSON",
    async (path) => {
      await fetch(gate.url + path, {
        method: "POST",
        headers: { "x-api-key": gate.key, "content-type": "application/x-www-form-urlencoded" },
        body: ' {"model":"x","max_tokens":500}',
      });
      const { body } = await backend.nextRequest();
      expect(Buffer.from(body()).toString()).toBe(' {"model":"live","max_tokens":9}');
    },
  );

  test("to another path is forwarded unchanged", async () => {
    await fetch(`${gate.url}/v1/anything`, {
      method: "POST",
      headers: { "x-api-key": gate.key, "content-type": "application/x-www-form-urlencoded" },
      body: '{"model":"x"}',
    });
    expect(Buffer.from((await backend.nextRequest()).body()).toString()).toBe('{"model":"x"}');
  });
});

test("bodies that take long to read hold up those of their own key, not those of another", async () => {
  const { key: other } = await gate.admin.createKey("beside a flood");
  const hostile = hostileBodies.find(({ name }) => name === "small members");
  let done = 0;
  const send = async (key: string, length: number): Promise<number> => {
    const headers = { "x-api-key": key, "content-type": "application/json" };
    const body = hostile?.create(length) ?? null;
    const response = await fetch(`${gate.url}/v1/embeddings`, { method: "POST", headers, body });
    await response.text();
    expect(response.status).toBe(200);
    done += 1;
    return done;
  };
  const flood = Array.from({ length: 7 }, () => send(gate.key, 270_000));
  await settled();
  // It takes as long as four of them.
  expect(await send(other, 1_000_000)).toBeLessThan(7);
  await Promise.all(flood);
});
