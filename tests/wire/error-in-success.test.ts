import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { pollUntil } from "../support/poll-until.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

/** What the backend sends next. */
let sent = { type: "", body: "" };
let backend: ReturnType<typeof Bun.serve>;
let gate: Tollgate;
beforeAll(async () => {
  backend = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response(sent.body, { headers: { "content-type": sent.type } }),
  });
  gate = await startTollgate({ PROXY_UPSTREAM_URL: `http://127.0.0.1:${backend.port}` });
});
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  await backend.stop(true);
});

const stream = "text/event-stream";
const json = "application/json";
const paths = ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"];
const events = (...parts: string[]): string => parts.map((part) => `${part}\n\n`).join("");
const data = (value: object): string => `data: ${JSON.stringify(value)}`;
const oom = { message: "CUDA out of memory", type: "server_error", code: 500 };
const token = data({ choices: [{ index: 0, delta: { content: "Hi" } }] });
const finish = data({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
const role = data({ choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }] });

type Row = [name: string, type: string, body: string, message: string | null];

const failures: Row[] = [
  ["an event with an error's text", stream, events(data({ error: "No worker" }), "data: [DONE]"), "No worker"],
  ["an event with an error", stream, events(token, data({ error: oom }), "data: [DONE]"), oom.message],
  ["an error with a code alone", stream, events(data({ error: { code: 500 } })), null],
  ["an error with a type alone", stream, events(data({ error: { message: "", type: "abort" } })), null],
  ["a field that is an error", stream, events(token, `error: ${JSON.stringify(oom)}`), oom.message],
  ["an event of that name", stream, events(token, 'event: error\ndata: {"message":"Gone"}'), "Gone"],
  [
    "response.failed",
    stream,
    events(data({ type: "response.created" }), data({ type: "response.failed", response: { error: oom } })),
    oom.message,
  ],
  [
    "a long response.failed",
    stream,
    events(data({ type: "response.failed", response: { output: "x".repeat(100_000), error: oom } })),
    oom.message,
  ],
  ["a chunk with choices and an error", stream, events(data({ choices: [{ delta: {} }], error: oom })), oom.message],
  ["a stream without content", stream, events(role, ": ping", "data: [DONE]"), null],
  ["a stream without an event", stream, "", null],
  [
    "a stream of beginnings that repeat the request",
    stream,
    events(
      data({ type: "response.created", response: { instructions: [{ role: "system", content: "Say" }] } }),
      data({ response: { tools: [{ name: "f", text: "x" }] }, type: "response.in_progress" }),
      data({ type: "message_start", message: { content: [], stop_reason: null } }),
      data({ type: "content_block_start", content_block: { type: "text", text: "" } }),
      "event: ping\ndata: {}",
    ),
    null,
  ],
  ["a whole answer", json, JSON.stringify({ id: "x", error: oom }), oom.message],
  ["a long answer", json, JSON.stringify({ pad: "x".repeat(2_000_000), error: oom }), oom.message],
];

const successes: [name: string, type: string, body: string][] = [
  ["an error that is null", stream, events(data({ choices: [{ delta: { content: "Hi" } }], error: null }), finish)],
  ["an error that is empty", stream, events(token, data({ choices: [], error: {} }), finish)],
  ["an error that is an empty text", json, JSON.stringify({ error: "" })],
  ["an error without any member that tells", json, JSON.stringify({ error: { message: "", code: 0, type: null } })],
  [
    "an error that a tool's call quotes",
    stream,
    events(
      data({ choices: [{ delta: { tool_calls: [{ function: { arguments: '{"error":{"message":"x"}}' } }] } }] }),
      finish,
    ),
  ],
  ["an error deeper than the top", json, JSON.stringify({ output: [{ error: { message: "x" } }] })],
  [
    "a stream of what no dialect has",
    stream,
    events(data({ choices: [{ delta: { audio: { id: "a" } } }] }), "data: [DONE]"),
  ],
  ["a stream of text", stream, events("data: Hi", "data: [DONE]")],
  ["a stream of reasoning", stream, events(data({ choices: [{ delta: { role: "assistant", thoughts: "Hm" } }] }))],
  [
    "a stream that calls a tool",
    stream,
    events(data({ type: "content_block_start", content_block: { type: "tool_use", name: "f", input: {} } })),
  ],
  ["a stream that finishes without content", stream, events(role, finish, "data: [DONE]")],
  [
    "a stream of Messages that refuses",
    stream,
    events(data({ type: "message_delta", delta: { stop_reason: "refusal" } })),
  ],
  [
    "a stream with usage alone",
    stream,
    events(data({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 1 } })),
  ],
  ["an answer without usage", json, "{}"],
  ["an empty answer", json, ""],
];

async function ask(path: string, type: string, body: string, key = gate.key, method = "POST") {
  sent = { type, body };
  const before = await gate.readKey();
  const request = { model: "m", max_tokens: 9, stream: type === stream };
  const response = await gate.send(path, method === "GET" ? undefined : request, { key, method });
  const got = await response.text();
  const id = response.headers.get("x-request-id") ?? "";
  const logged = await gate.waitForLog(({ requestId }) => requestId === id);
  const row = await pollUntil(async () => (await gate.admin.listRequests(`?request_id=${id}`))[0]);
  const counted = (await gate.readKey()).total_request_count - before.total_request_count;
  return { status: response.status, got, logged, row, counted };
}

describe.each(paths)("on %s", (path) => {
  test.each(failures)("%s says that the response failed, which does not count", async (_, type, body, message) => {
    const { status, got, logged, row, counted } = await ask(path, type, body);
    expect({ status, isSame: got === body, counted }).toEqual({ status: 200, isSame: true, counted: 0 });
    const cause = body.includes("error") || body.includes("failed") ? "reported_error" : "empty_stream";
    const end = { status: 200, outcome: "upstream_failed", code: "error_in_response", cause };
    expect(logged).toMatchObject(end);
    expect(logged["error"] ?? null).toBe(message);
    expect(row).toMatchObject({ ...end, message });
  });

  test.each(successes)("%s is no failure", async (_, type, body) => {
    const { got, logged, counted } = await ask(path, type, body);
    expect({ isSame: got === body, counted }).toEqual({ isSame: true, counted: 1 });
    expect(logged).toMatchObject({ status: 200, outcome: "completed" });
  });
});

test.each([
  ["GET", "/v1/responses/resp_1"],
  ["GET", "/v1/fine_tuning/jobs/1"],
  ["POST", "/v1/embeddings"],
  ["POST", "/v1/audio/speech"],
])("%s %s with an error in it counts as before", async (method, path) => {
  const { logged, counted } = await ask(path, json, JSON.stringify({ error: oom }), gate.key, method);
  expect(logged).toMatchObject({ outcome: "completed" });
  expect(counted).toBe(1);
});

test("what a backend quotes of a request is in no log", async () => {
  const message = "1 validation error [type=string_type, input_value={'content': 'SECRET'}]\nSECRET";
  const quoted = await ask("/v1/chat/completions", json, JSON.stringify({ error: { message } }));
  const long = `Cannot parse "${"SECRET ".repeat(20)}"`;
  const other = await ask("/v1/chat/completions", stream, events(data({ error: { message: long } })));
  expect(JSON.stringify([quoted.row, quoted.logged, other.row, other.logged])).not.toContain("SECRET");
});

test("metrics and Failures name it", async () => {
  await ask("/v1/chat/completions", stream, events(data({ error: oom })));
  const metrics = await (await gate.admin.request("GET", "/metrics")).text();
  expect(metrics).toMatch(/tollgate_upstream_errors_total\{code="error_in_response",cause="reported_error"\} [1-9]/);
  await pollUntil(async () => {
    const { points } = await gate.admin.expectOk<{ points: { outcomes: Record<string, number> }[] }>(
      "GET",
      "/api/failures",
    );
    return points.some(({ outcomes }) => (outcomes["upstream_failed"] ?? 0) > 0);
  });
});

test.each([
  ["nothing came", events(data({ error: oom })), 0],
  ["output came", events(token, token, data({ error: oom })), 2],
  [
    "usage came",
    events(token, data({ choices: [], usage: { prompt_tokens: 30, completion_tokens: 4 }, error: oom })),
    34,
  ],
])("limits of tokens are charged what was generated where %s, and the turn is used", async (name, body, charged) => {
  const limits = { tokens_per_day: 100_000, requests_per_minute: 50 };
  const { key } = await gate.admin.expectOk<{ key: string }>("POST", "/api/keys", { name, ...limits });
  await ask("/v1/chat/completions", stream, body, key);
  const after = await gate.send("/v1/tollgate/key", undefined, { key });
  expect(await after.json()).toMatchObject({ used: { tokens_per_day: charged, requests_per_minute: 1 } });
});

test("what a failed response has generated is charged once, though it is read again", async () => {
  const limits = { name: "again", tokens_per_day: 100_000 };
  const { key } = await gate.admin.expectOk<{ key: string }>("POST", "/api/keys", limits);
  const usage = { input_tokens: 30, output_tokens: 4, total_tokens: 34 };
  const response = { id: "resp_failed", object: "response", status: "failed", error: oom, usage };
  const created = data({ type: "response.created", response: { id: response.id } });
  await ask("/v1/responses", stream, events(created, data({ type: "response.failed", response })), key);
  await ask(`/v1/responses/${response.id}`, json, JSON.stringify(response), key, "GET");
  const after = await gate.send("/v1/tollgate/key", undefined, { key });
  expect(await after.json()).toMatchObject({ used: { tokens_per_day: 34 } });
});

test("of two equal backends the one that fails in its bodies draws few requests, unless its clients are at fault", async () => {
  using folder = createTempFolder();
  const run = async (error: object): Promise<number> => {
    let drawn = 0;
    const serve = (body: string, onChat: () => void, health: number) =>
      Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch(request) {
          if (request.method !== "POST") return new Response("{}", { status: health });
          onChat();
          return new Response(body, { headers: { "content-type": stream } });
        },
      });
    const broken = serve(events(data({ error })), () => void drawn++, 503);
    const good = serve(events(token, finish, "data: [DONE]"), () => {}, 200);
    const file = folder.file("models.yaml");
    const urls = [broken, good].map(({ port }, at) => `  b${at}: { url: "http://127.0.0.1:${port}" }`);
    writeFileSync(file, `backends:\n${urls.join("\n")}\nmodels:\n  m: { backends: [b0, b1] }\n`);
    await using both = await startTollgate({ MODELS_FILE: file });
    for (let n = 0; n < 48; n++) {
      const body = { model: "m", stream: true, messages: [{ role: "user", content: `${n}` }] };
      await (await both.send("/v1/chat/completions", body)).text();
    }
    await broken.stop(true);
    await good.stop(true);
    return drawn;
  };
  expect(await run(oom)).toBeLessThan(8);
  expect(await run({ message: "Too long", code: "context_length_exceeded" })).toBeGreaterThan(15);
  expect(await run({ message: "Too long", code: "400" })).toBeGreaterThan(15);
  expect(await run({ message: "Too many", type: "rate_limit_error" })).toBeGreaterThan(15);
});

test.each([
  ["/v1/chat/completions", true],
  ["/v1/completions", true],
  ["/v1/messages", true],
  ["/v1/responses", true],
  ["/v1/audio/speech", false],
])("on %s the first byte is the first content: %p", async (path, isContent) => {
  const slowMs = 200;
  const opening = events(": ping", role, "event: ping\ndata: {}", data({ type: "response.created", response: {} }));
  const slow = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () =>
      new Response(
        new ReadableStream({
          async start(controller) {
            controller.enqueue(Buffer.from(opening));
            // It reads the prompt.
            await Bun.sleep(slowMs);
            controller.enqueue(Buffer.from(events(token, finish, "data: [DONE]")));
            controller.close();
          },
        }),
        { headers: { "content-type": stream } },
      ),
  });
  await using other = await startTollgate({ PROXY_UPSTREAM_URL: `http://127.0.0.1:${slow.port}` });
  const response = await other.send(path, { model: "m", stream: true });
  await response.text();
  const id = response.headers.get("x-request-id");
  const { firstByteMs, durationMs } = await other.waitForLog(({ requestId }) => requestId === id);
  const slowBefore = isContent ? Number(firstByteMs) : Number(durationMs) - Number(firstByteMs);
  expect(slowBefore).toBeGreaterThanOrEqual(slowMs * 0.9);
  await slow.stop(true);
});
