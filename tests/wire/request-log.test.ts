import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { startTollgate } from "../support/tollgate.ts";

const backend = shared(() => startSimulator());
const gate = shared(() =>
  startTollgate({
    PROXY_UPSTREAM_URL: backend.url,
    PROXY_HAN_GUARD: "off",
    PROXY_ALIAS_MODEL: "Served",
    MAX_OUTPUT_TOKENS: "100",
  }),
);

// oxlint-disable-next-line typescript/no-explicit-any -- a wrong shape fails the test
type Logged = Record<string, any>;

function send(id: string, body: object, script = "usage=12,5", key = gate.key): Promise<Response> {
  const sent = { model: "claude-x", messages: [{ role: "user", content: "Hi" }], ...body };
  const headers = { "x-request-id": id, "user-agent": "Agent/1.0 (test)" };
  return gate.send("/v1/chat/completions", sent, { key, script, headers });
}

const list = (query: string): Promise<Logged[]> => gate.admin.listRequests(`?${query}`);
const findLogged = (id: string): Promise<Logged> => pollUntil(async () => (await list(`request_id=${id}`))[0] ?? false);

test("a counted request is in the log when its client has seen the end", async () => {
  await (await send("whole", { max_tokens: 5000 })).text();
  const requests = await list("request_id=whole");
  expect(requests).toHaveLength(1);
  expect(requests[0]).toMatchObject({
    key_id: gate.keyId,
    key_name: "test",
    address: "127.0.0.1",
    client: "Agent/1.0",
    method: "POST",
    path: "/v1/chat/completions",
    model_asked: "claude-x",
    model_sent: "Served",
    backend: new URL(backend.url).host,
    status: 200,
    outcome: "completed",
    code: null,
    streamed: false,
    input_tokens: 12,
    output_tokens: 5,
    changes: ["model", "max_tokens"],
    max_tokens_from: 5000,
    max_tokens_to: 100,
  });
  const { queue_ms, upstream_ms, first_byte_ms, duration_ms } = requests[0] ?? {};
  expect(queue_ms + upstream_ms).toBeLessThanOrEqual(first_byte_ms);
  expect(first_byte_ms).toBeLessThanOrEqual(duration_ms);
});

test.each([
  [
    "stream",
    { stream: true, stream_options: { include_usage: true } },
    "usage=12,5",
    { streamed: true, outcome: "completed", output_tokens: 5 },
  ],
  ["error", {}, "status=429", { status: 429, outcome: "completed", input_tokens: null }],
  [
    "reset",
    {},
    "reset-before-head",
    { status: 502, outcome: "upstream_failed", code: "upstream_unreachable", cause: "ECONNRESET" },
  ],
])("a request that ends as %s is in the log once", async (id, body, script, expected) => {
  await (await send(id, body, script)).text();
  expect(await findLogged(id)).toMatchObject(expected);
  expect(await list(`request_id=${id}`)).toHaveLength(1);
});

test.each<[type: string, isGzip: boolean, streamed: boolean]>([
  ["text/event-stream; charset=utf-8", false, true],
  ["Text/Event-Stream", true, true],
  ["application/json", false, false],
  ["application/json", true, false],
  ["application/x-ndjson", false, false],
  ["text/plain", false, false],
])("a response under %s (in gzip: %p) is in the log as streamed: %p", async (type, isGzip, streamed) => {
  const text = "data: x\n\n";
  backend.handle((_, wire) => {
    const body = isGzip ? Bun.gzipSync(text) : Buffer.from(text);
    const encoding = isGzip ? "Content-Encoding: gzip\r\n" : "";
    wire.write(`HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\n${encoding}Content-Length: ${body.length}\r\n\r\n`);
    wire.write(body);
  });
  const id = `streamed ${type} ${isGzip}`.replaceAll(" ", "-");
  expect(await (await send(id, {})).text()).toBe(text);
  backend.handle(undefined);
  expect(await findLogged(encodeURIComponent(id))).toMatchObject({ streamed, outcome: "completed" });
});

test("a refused request is in the log without its key", async () => {
  await (await send("wrong", {}, "", "a-wrong-key-of-someone")).text();
  const logged = await findLogged("wrong");
  expect(logged).toMatchObject({
    status: 401,
    outcome: "refused",
    code: "invalid_api_key",
    key_id: null,
    backend: null,
  });
  expect(JSON.stringify(logged)).not.toContain("a-wrong-key");
});

describe("a running request", () => {});

test("a server with REQUEST_LOG_DAYS=0 logs nothing in the database, and counts all the same", async () => {
  await using other = await startTollgate({ PROXY_UPSTREAM_URL: backend.url, REQUEST_LOG_DAYS: "0" });
  await (await other.send("/v1/chat/completions", { model: "m", messages: [] }, { script: "usage=12,5" })).text();
  expect((await other.readKey()).total_input_tokens).toBe(12);
  expect(await other.admin.expectOk("GET", "/api/requests")).toMatchObject({ requests: [], log: { days: 0 } });
});

test("a server that starts with REQUEST_LOG_DAYS=0 deletes what was logged before, without any request", async () => {
  using folder = createTempFolder();
  {
    await using before = await startTollgate({ PROXY_UPSTREAM_URL: backend.url }, { dataDir: folder.path });
    await (await before.send("/v1/models")).text();
    await pollUntil(async () => (await before.admin.listRequests()).length === 1);
  }
  const environment = { PROXY_UPSTREAM_URL: backend.url, REQUEST_LOG_DAYS: "0" };
  await using after = await startTollgate(environment, { dataDir: folder.path });
  await pollUntil(async () => (await after.admin.listRequests()).length === 0);
});
