import { gzipSync } from "node:zlib";
import { beforeEach, describe, expect, test } from "bun:test";
import type { Environment } from "../../src/config/config.ts";
import { pollUntil } from "../support/poll-until.ts";
import { connectRaw } from "../support/raw-client.ts";
import { shared } from "../support/shared.ts";
import { chat, errorOf, startTollgateWithKeys, type TollgateWithKeys } from "../support/tollgate-with-keys.ts";

const gate = shared(() => startTollgateWithKeys());
beforeEach(() => gate.backend.clear());

const waiting = async ({ admin }: TollgateWithKeys): Promise<number> =>
  Number(/^tollgate_queue_waiting_requests (\d+)$/m.exec(await (await admin.request("GET", "/metrics")).text())?.[1]);

describe("a place of a limit of concurrent requests is given back", () => {
  const stream = { ...chat, stream: true };
  const endings: Record<string, (key: string) => Promise<unknown>> = {
    "after a whole response": async (key) => (await gate.post(key)).text(),
    "after a stream": async (key) => (await gate.post(key, { body: stream })).text(),
    "after a HEAD": (key) => gate.send("/v1/models", undefined, { key, method: "HEAD" }),
    "after a response without a body": (key) => gate.post(key, { script: "204" }),
    "after an error of the backend": async (key) => (await gate.post(key, { script: "status=500" })).text(),
    "after a reset before the head": async (key) => (await gate.post(key, { script: "reset-before-head" })).text(),
    "after garbage": async (key) => (await gate.post(key, { script: "garbage" })).text(),
    "after a whole response that breaks off": async (key) =>
      (await gate.post(key, { script: "wrong-length=100; body=1000; gap=30ms@1" })).text(),
    "after a stream that breaks off": async (key) => (await gate.postRaw(key, "die@2", stream)).ended(),
    "after the client left before the head": async (key) => {
      const client = await gate.postRaw(key, "slow-head=forever", stream);
      await gate.backend.nextRequest();
      client.reset();
    },
    "after the client left a stream": async (key) => {
      const client = await gate.postRaw(key, "gap=forever@2", stream);
      await client.nextEvent();
      client.close();
    },
    "after the client left while it sent its body": async (key) => {
      const client = await connectRaw(gate.url);
      client.send(
        `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nx-api-key: ${key}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`,
      );
      await pollUntil(() => gate.log.some(({ message }) => message === "Listening"));
      client.reset();
    },
    "after a body that is refused": async (key) =>
      (await gate.post(key, { body: Object.fromEntries([["model", "m"]]), script: "status=400" })).text(),
    "after a body that is too large": async (key) => {
      const sent = { key, headers: { "content-length": "999999999" } };
      (await gate.sendRaw("/v1/chat/completions", "", sent)).close();
    },
    "after a stream without usage": async (key) => (await gate.post(key, { body: stream, script: "no-usage" })).text(),
    "after a stream without its terminal event": async (key) =>
      (await gate.post(key, { body: stream, script: "no-done" })).text(),
  };

  test.each(Object.entries(endings))("%s", async (_, end) => {
    const { id, key } = await gate.createKey({ max_concurrency: 1, tokens_per_day: 1_000_000 });
    await end(key);
    await expectFree(id);
    expect((await gate.post(key)).status).toBe(200);
  });

  const timeouts: Record<string, (key: string, to: TollgateWithKeys) => Promise<unknown>> = {
    "after a read timeout before the head": async (key, to) =>
      (await to.post(key, { script: "slow-head=forever" })).text(),
    "after a read timeout within a stream": async (key, to) => (await to.postRaw(key, "gap=forever@2", stream)).ended(),
  };

  test.each(Object.entries(timeouts))("%s", async (_, end) => {
    await using impatient = await startTollgateWithKeys({
      PROXY_STREAM_READ_TIMEOUT: "0.5",
      PROXY_NONSTREAM_READ_TIMEOUT: "0.5",
    });
    const { id, key } = await impatient.createKey({ max_concurrency: 1, tokens_per_day: 1_000_000 });
    await end(key, impatient);
    await expectFree(id, impatient);
  });

  async function expectFree(id: number, of = gate): Promise<void> {
    await pollUntil(async () => (await of.getKey(id)).used["max_concurrency"] === 0);
    // Nothing is reserved either.
    const [totals, { used }] = [await of.getKey(id), await of.getKey(id)];
    const { total_input_tokens: input, total_output_tokens: output, total_estimated_tokens: estimated } = totals;
    expect(used["tokens_per_day"]).toBe(input + output + estimated);
  }

  test("before the client sees the end, so that it can go on at once", async () => {
    const { key } = await gate.createKey({ max_concurrency: 1 });
    for (let n = 0; n < 20; n++) {
      const response = await gate.post(key, { body: n % 2 === 0 ? stream : chat });
      expect(response.status).toBe(200);
      await response.text();
    }
  });
});

describe("a body that has not come with its head", () => {
  const large = { ...chat, messages: [{ role: "user", content: "x".repeat(200_000) }] };

  /** Sends the head of a large body, and its first byte. @returns what sends the rest */
  async function begin({ url }: TollgateWithKeys, key: string, headers = "") {
    const body = JSON.stringify(large);
    const client = await connectRaw(url);
    client.send(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nx-api-key: ${key}\r\n${headers}Content-Length: ${body.length}\r\n\r\n{`,
    );
    return { client, sendRest: () => client.send(body.slice(1)) };
  }

  test("takes its place before it is waited for, and keeps it", async () => {
    const { id, key } = await gate.createKey({ max_concurrency: 1, requests_per_minute: 9, tokens_per_day: 1_000_000 });
    const { client, sendRest } = await begin(gate, key);
    await pollUntil(async () => (await gate.getKey(id)).used["max_concurrency"] === 1);
    const others = Array.from({ length: 4 }, (_, n) => gate.post(key, { body: n % 2 === 0 ? chat : large }));
    await pollUntil(async () => (await waiting(gate)) === 4);
    // Those whose bodies are not read yet are in line too.
    expect((await gate.admin.listRunning()).map(({ state }) => state).toSorted()).toEqual([
      ...Array(4).fill("queued"),
      "receiving",
    ]);
    sendRest();
    const head = await client.head();
    expect([head.status, head.header("x-ratelimit-remaining-requests")]).toEqual([200, "8"]);
    await client.ended();
    expect((await Promise.all(others)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await gate.getKey(id)).used).toMatchObject({ max_concurrency: 0, requests_per_minute: 5 });
    client.close();
  });

  test("is refused before it is sent if no place is free, and gives back one whose client leaves", async () => {
    await using busy = await startTollgateWithKeys({ PROXY_QUEUE_TIMEOUT: "0" });
    const { id, key } = await busy.createKey({ max_concurrency: 1, requests_per_minute: 9 });
    const first = await begin(busy, key);
    await pollUntil(async () => (await busy.getKey(id)).used["max_concurrency"] === 1);
    const second = await begin(busy, key);
    expect((await second.client.head()).status).toBe(429);
    await second.client.closed();
    first.client.reset();
    await pollUntil(async () => (await busy.getKey(id)).used["max_concurrency"] === 0);
    expect((await busy.getKey(id)).used["requests_per_minute"]).toBe(0);
    expect((await busy.post(key, { body: large })).status).toBe(200);
  });

  test("that turns out to be of no use gets its error with what the limits of the key leave", async () => {
    const { key } = await gate.createKey({ max_concurrency: 1, requests_per_minute: 9 });
    const { status, headers } = await gate.post(key, { body: [large] });
    expect([status, headers.get("x-ratelimit-limit-requests")]).toEqual([415, "9"]);
  });

  test("leaves the line if its client does", async () => {
    const { id, key } = await gate.createKey({ max_concurrency: 1 });
    const first = await begin(gate, key);
    await pollUntil(async () => (await gate.getKey(id)).used["max_concurrency"] === 1);
    const second = await begin(gate, key);
    await pollUntil(async () => (await waiting(gate)) === 1);
    second.client.reset();
    await pollUntil(async () => (await waiting(gate)) === 0);
    first.client.reset();
  });
});

test("requests per minute are asked before a compressed body is decoded", async () => {
  const { id, key } = await gate.createKey({ requests_per_minute: 2 });
  const send = (body: Uint8Array) =>
    gate.send("/v1/chat/completions", body, { key, headers: { "content-encoding": "gzip" } });
  const broken = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
  expect((await send(gzipSync(JSON.stringify(chat)))).status).toBe(200);
  expect((await send(broken)).status).toBe(415);
  // It was not sent.
  await pollUntil(async () => (await gate.getKey(id)).used["requests_per_minute"] === 1);
  expect((await send(gzipSync(JSON.stringify(chat)))).status).toBe(200);
  expect(await errorOf(await send(broken))).toMatchObject({ status: 429, code: "requests_per_minute" });
});

describe("over a limit of concurrent requests", () => {
  const stream = { ...chat, stream: true };

  /** A gate, and a key whose only place is taken. */
  async function startBusy(environment: Environment, more: object = {}) {
    const busy = await startTollgateWithKeys(environment);
    const { id, key } = await busy.createKey({ max_concurrency: 1, ...more });
    const first = await busy.postRaw(key, "gap=forever@1", stream);
    await first.nextEvent();
    return { busy, id, key, first };
  }

  test("requests wait, and run one after another", async () => {
    const { busy, id, key, first } = await startBusy({});
    await using _ = busy;
    const others = Array.from({ length: 5 }, () => busy.post(key));
    await pollUntil(async () => (await waiting(busy)) === 5);
    expect((await busy.getKey(id)).used["max_concurrency"]).toBe(1);
    first.reset();
    expect((await Promise.all(others)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(await busy.getKey(id)).toMatchObject({ refused_today: 0, used: { max_concurrency: 0 } });
  });

  test("a stream that waits gets comments, and then its events", async () => {
    const { busy, key, first } = await startBusy({ PROXY_SSE_KEEPALIVE: "0.1" }, { requests_per_minute: 5 });
    await using _ = busy;
    const second = await busy.postRaw(key, "", stream);
    const head = await second.head();
    expect([head.status, head.header("x-ratelimit-remaining-requests")]).toEqual([200, "4"]);
    expect(await second.nextEvent()).toBe(": keepalive\n\n");
    first.reset();
    expect(await second.text()).toEndWith("data: [DONE]\n\n");
  });

  test("a request is refused after PROXY_QUEUE_TIMEOUT, counts as one refused, and may come again when one may have ended", async () => {
    const { busy, id, key, first } = await startBusy({ PROXY_QUEUE_TIMEOUT: "1.5" });
    await using _ = busy;
    const refused = await busy.post(key);
    expect(refused.headers.get("retry-after")).toBe("2");
    expect(await errorOf(refused)).toMatchObject({
      status: 429,
      code: "max_concurrency",
      message: "This API key is limited to 1 concurrent request; try again in 2 seconds.",
    });
    await pollUntil(async () => (await busy.getKey(id)).refused_today === 1);
    first.reset();
    await pollUntil(async () => (await busy.post(key)).status === 200);
  });

  test("a request is refused at once if PROXY_QUEUE_TIMEOUT is 0", async () => {
    const { busy, key, first } = await startBusy({ PROXY_QUEUE_TIMEOUT: "0" });
    await using _ = busy;
    expect(await errorOf(await busy.post(key))).toMatchObject({ status: 429, code: "max_concurrency" });
    first.reset();
    await pollUntil(async () => (await busy.post(key)).status === 200);
  });

  test("requests beyond PROXY_QUEUE_SIZE get 503, and one whose client leaves makes room at once", async () => {
    const { busy, key, first } = await startBusy({ PROXY_QUEUE_SIZE: "1" });
    await using _ = busy;
    const second = await busy.postRaw(key, "", stream);
    await pollUntil(async () => (await waiting(busy)) === 1);
    expect(await errorOf(await busy.post(key))).toMatchObject({ status: 503, code: "queue_full" });
    second.reset();
    await pollUntil(async () => (await waiting(busy)) === 0);
    const third = busy.post(key);
    await pollUntil(async () => (await waiting(busy)) === 1);
    first.reset();
    expect((await third).status).toBe(200);
  });
});
