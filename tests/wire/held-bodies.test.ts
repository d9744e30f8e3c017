import { beforeEach, describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { hostileBodies } from "../fixtures/hostile-bodies.ts";
import { pollUntil } from "../support/poll-until.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";
import { unreadBytes } from "../support/unread-bytes.ts";

const megabyte = 1024 * 1024;
const backend = shared(() => startSimulator());
const gate = shared(() =>
  startTollgate({
    PROXY_UPSTREAM_URL: backend.url,
    PROXY_ALIAS_MODEL: "live",
    PROXY_ALIAS_REWRITE_ALL: "on",
    PROXY_HAN_GUARD: "off",
    MAX_OUTPUT_TOKENS: "9",
    MAX_BODY_BYTES: String(megabyte),
    MAX_HELD_BYTES: String(8 * megabyte),
  }),
);
beforeEach(() => backend.clear());

/** Announces a body of so many megabytes and sends its first byte. */
async function announce({ url }: Tollgate, key: string, megabytes: number): Promise<RawClient> {
  const client = await connectRaw(url);
  client.send(
    `POST /v1/anything HTTP/1.1\r\nHost: h\r\nx-api-key: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${megabytes * megabyte}\r\n\r\n{`,
  );
  return client;
}

const hold = (key: string): Promise<RawClient> => announce(gate, key, 1);

/** Waits until all earlier requests have taken their share: a refused request is handled after them. */
const settled = async (of = gate): Promise<unknown> =>
  (await of.send("/v1/models", undefined, { key: "wrong" })).text();

const small = (key: string, of = gate): Promise<Response> =>
  of.send("/v1/embeddings", { model: "m", input: "a" }, { key });

describe("held bodies", () => {
  test("take a quarter of the budget for one key, all of it for all, the last quarter one by one, and give it back", async () => {
    const keys = await Promise.all(["a", "b", "c", "d", "e", "f"].map((name) => gate.admin.createKey(name)));
    const [greedy = "", second = "", third = "", fourth = "", fifth = "", sixth = ""] = keys.map(({ key }) => key);
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

    for (const key of [second, second, third, third, fourth]) clients.push(await hold(key));
    await settled();
    expect((await small(fourth)).status).toBe(429);
    expect((await small(fifth)).status).toBe(200);
    clients.push(await hold(fifth));
    await settled();
    expect((await small(sixth)).status).toBe(429);
    // A body that needs no rewrite is not held, so it needs no budget.
    const file = { key: greedy, method: "PUT", headers: { "content-type": "text/plain" } };
    const streamed = await gate.send("/v1/files", "x", file);
    expect(streamed.status).toBe(200);

    for (const client of clients) client.close();
    await gate.waitForLog(
      () => gate.log.filter((entry) => entry["outcome"] === "client_left").length >= clients.length,
    );
    expect((await small(greedy)).status).toBe(200);
  });

  test("of requests that fail before they are sent give back what they took", async () => {
    const { key } = await gate.admin.createKey("held for nothing", { allowed_models: ["other"] });
    const body = { model: "m", input: "a".repeat(0.9 * megabyte) };
    // Each takes nearly half of what the key may hold.
    for (let times = 0; times < 4; times++) {
      const response = await gate.send("/v1/embeddings", body, { key });
      expect(await response.json()).toMatchObject({ error: { code: "model_not_allowed" } });
    }
  });
});

test("four keys that announce the whole budget, and send a byte now and then, lock no other key out", async () => {
  await using open = await startTollgate({ PROXY_UPSTREAM_URL: backend.url });
  const keys = await Promise.all(["a", "b", "c", "d", "e"].map((name) => open.admin.createKey(name)));
  const other = keys.pop();
  if (other === undefined) throw new Error("No keys");
  const clients = await Promise.all([...keys, ...keys, ...keys, ...keys].map(({ key }) => announce(open, key, 64)));
  await settled(open);
  for (const client of clients) client.send(" ");
  await settled(open);
  expect((await small(other.key, open)).status).toBe(200);
  expect(open.log.filter(({ status }) => status === 429)).toEqual([]);
  for (const client of clients) client.close();
});

test("where the budget runs out, the slowest body ends with its connection, and makes room to another", async () => {
  const size = { MAX_BODY_BYTES: String(megabyte), MAX_HELD_BYTES: String(4 * megabyte) };
  await using tight = await startTollgate({ PROXY_UPSTREAM_URL: backend.url, ...size });
  const keys = await Promise.all(["a", "b", "c", "d", "e"].map((name) => tight.admin.createKey(name)));
  const [slow, ...others] = await Promise.all(keys.slice(0, 4).map(({ key }) => announce(tight, key, 1)));
  for (const other of others) other.send(" ".repeat(200_000));
  await settled(tight);
  const last = keys[4]?.key ?? "";
  expect((await small(last, tight)).status).toBe(429);
  // A younger body makes no room.
  await Bun.sleep(10_000);
  expect((await small(last, tight)).status).toBe(200);
  expect((await slow?.head())?.status).toBe(429);
  slow?.send(" ");
  await slow?.closed();
  for (const other of others) other.send(`${" ".repeat(megabyte - 200_002)}}`);
  expect(await Promise.all(others.map(async (other) => (await other.head()).status))).toEqual([200, 200, 200]);
  for (const other of others) other.close();
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
  const [short, long] = [hostile?.create(540_000), hostile?.create(1_000_000) ?? Buffer.of()];
  const client = await connectRaw(gate.url);
  const headers = `x-api-key: ${other}\r\nContent-Type: application/json\r\nContent-Length: ${long.length}`;
  client.send(`POST /v1/embeddings HTTP/1.1\r\nHost: h\r\n${headers}\r\n\r\n`);
  // All but its last byte comes before the flood: how long that takes is another matter.
  client.send(long.subarray(0, -1));
  await pollUntil(() => unreadBytes(Number(new URL(gate.url).port)) === 0);
  let done = 0;
  const flood = Array.from({ length: 3 }, async () => {
    const response = await gate.send("/v1/embeddings", short, { key: gate.key });
    await response.text();
    expect(response.status).toBe(200);
    done += 1;
  });
  await settled();
  client.send(long.subarray(-1));
  expect((await client.head()).status).toBe(200);
  // It takes as long as two of them, which take their turns beside it.
  expect(done).toBeLessThan(flood.length);
  await Promise.all(flood);
  client.close();
});
