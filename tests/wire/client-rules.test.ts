import { describe, expect, test } from "bun:test";
import type { ClientRules } from "../../src/domain/models.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type Json, type Recording, recordings, refusalOf, render, withTexts } from "../support/recorded-requests.ts";
import { rewriterOf, rewriteRules } from "../support/rewrite-rules.ts";
import { textOf } from "../support/rewritten.ts";
import { startTollgate } from "../support/tollgate.ts";

interface Read {
  tokens: number;
  cached: number;
  refused: boolean;
}

/** An engine like vLLM, with a cache of prefixes: system turns go to its head, and roles that it does not know are refused. */
function startEngine() {
  const prompts: string[] = [];
  const read: Read[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/version") return Response.json({ version: "0.11.0" });
      if (request.method !== "POST") return new Response("", { status: 404 });
      const body = (await request.json()) as Json;
      const refusal = refusalOf(body, pathname === "/v1/responses");
      const refused = refusal !== undefined && !refusal.startsWith("System message");
      const prompt = render(body);
      const cached = Math.max(0, ...prompts.map((earlier) => commonTokens(earlier, prompt)));
      const tokens = Math.ceil(prompt.length / 4);
      read.push({ tokens, cached, refused });
      if (refused) return Response.json({ error: { message: refusal } }, { status: 400 });
      prompts.push(prompt);
      return Response.json(answer(pathname, tokens, cached));
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, read, [Symbol.dispose]: () => void server.stop(true) };
}

/** In blocks of 16 tokens of 4 characters. */
function commonTokens(earlier: string, prompt: string): number {
  let at = 0;
  while (at + 64 <= earlier.length && prompt.startsWith(earlier.slice(at, at + 64), at)) at += 64;
  return at / 4;
}

function answer(path: string, tokens: number, cached: number): object {
  if (path === "/v1/messages") {
    const usage = { input_tokens: tokens - cached, cache_read_input_tokens: cached, output_tokens: 1 };
    return { id: "msg", type: "message", role: "assistant", content: [], model: "m", stop_reason: "end_turn", usage };
  }
  if (path === "/v1/responses") {
    const usage = { input_tokens: tokens, input_tokens_details: { cached_tokens: cached }, output_tokens: 1 };
    return { id: "resp", object: "response", status: "completed", output: [], usage };
  }
  const usage = { prompt_tokens: tokens, prompt_tokens_details: { cached_tokens: cached }, completion_tokens: 1 };
  return { id: "chat", object: "chat.completion", choices: [], usage };
}

/** Sends a recorded conversation. @returns what the engine read of it, and what the console says of client rules */
async function lead({ requests }: Recording, setting: string) {
  using engine = startEngine();
  await using gate = await startTollgate({
    PROXY_UPSTREAM_URL: engine.url,
    PROXY_HAN_GUARD: "off",
    MAX_OUTPUT_TOKENS: "64000",
    CLIENT_RULES: setting,
  });
  // It answers once the backend was asked what it is.
  await gate.admin.expectOk("GET", "/api/client-rules");
  for (const { path, userAgent, body } of requests) {
    const sent = withTexts(JSON.stringify({ ...body, stream: false, stream_options: undefined }));
    await (await gate.send(path, sent, { headers: { "user-agent": userAgent } })).text();
  }
  await pollUntil(async () => {
    const { total } = await gate.admin.expectOk<{ total: { request_count: number } }>("GET", "/api/requests/groups");
    return total.request_count === requests.length;
  });
  const { rows } = await gate.admin.expectOk<{ rows: Advice[] }>("GET", "/api/client-rules");
  return { read: engine.read, rows };
}

describe("the engine of a backend", () => {
  const systems = (text: string): number => text.split('"role":"system"').length - 1;

  /** A backend that says what it is once `speaks` resolves, and records the bodies that it gets. */
  function startMute(speaks: Promise<unknown>) {
    const bodies: string[] = [];
    const asked = Promise.withResolvers<void>();
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 0,
      async fetch(request) {
        const { pathname } = new URL(request.url);
        if (request.method === "POST") {
          bodies.push(await request.text());
          return Response.json(answer(pathname, 1, 0));
        }
        asked.resolve();
        await speaks;
        return pathname === "/version" ? Response.json({ version: "0.11.0" }) : new Response("", { status: 404 });
      },
    });
    return { url: `http://127.0.0.1:${server.port}`, bodies, asked: asked.promise, stop: () => void server.stop(true) };
  }

  test("is asked for before a request comes, and no request waits for that: until it is known, no rule holds", async () => {
    const speaks = Promise.withResolvers<void>();
    const backend = startMute(speaks.promise);
    await using gate = await startTollgate({
      PROXY_UPSTREAM_URL: backend.url,
      PROXY_HAN_GUARD: "off",
      CLIENT_RULES: "auto",
    });
    await backend.asked;
    const send = async () => {
      const response = await fetch(`${gate.url}/v1/messages`, {
        method: "POST",
        headers: { "x-api-key": gate.key, "content-type": "application/json", "user-agent": "claude-cli/2.1.332" },
        body: '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"system","content":"b"}]}',
      });
      await response.text();
      return systems(backend.bodies.at(-1) ?? "");
    };
    expect(await send()).toBe(1);
    speaks.resolve();
    await pollUntil(async () => (await send()) === 0);
    backend.stop();
  });
});

describe("a refusal of a full context", () => {
  const message = "The input (9000 tokens) is longer than the model's context length (8192 tokens).";
  const error = { message, type: "BadRequestError", param: null, code: 400 };
  const failed = (code: string) =>
    `event: response.failed\ndata: ${JSON.stringify({ type: "response.failed", response: { id: "r", status: "failed", error: { code, message } } })}\n\n`;
  const codex = "codex_exec/0.169.0 (Debian 13.0.0; x86_64)";

  async function openBoth(setting: string, keepalive = "0") {
    const isWaiting = Promise.withResolvers<void>();
    const backend = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        if (request.method !== "POST") return new Response("", { status: 404 });
        const { stream = false, input } = (await request.json()) as { stream?: boolean; input?: string };
        if (input === "late") await isWaiting.promise;
        if (stream && input !== "early" && input !== "late") {
          return new Response(failed("server_error"), { headers: { "content-type": "text/event-stream" } });
        }
        return Response.json({ error, echo: input }, { status: 400 });
      },
    });
    const gate = await startTollgate({
      PROXY_UPSTREAM_URL: `http://127.0.0.1:${backend.port}`,
      PROXY_HAN_GUARD: "off",
      CLIENT_RULES: setting,
      PROXY_SSE_KEEPALIVE: keepalive,
    });
    const ask = async (userAgent: string, body: object, path = "/v1/responses") => {
      const response = await fetch(gate.url + path, {
        method: "POST",
        headers: { "x-api-key": gate.key, "content-type": "application/json", "user-agent": userAgent },
        body: JSON.stringify({ model: "m", ...body }),
      });
      // Its head is here: the client got heartbeats, if the backend waits for that.
      isWaiting.resolve();
      return { status: response.status, text: await response.text() };
    };
    return {
      gate,
      ask,
      async [Symbol.asyncDispose]() {
        await gate[Symbol.asyncDispose]();
        void backend.stop(true);
      },
    };
  }

  const asItCame = (input: string) => JSON.stringify({ error, echo: input });
  const marked = (input: string) =>
    JSON.stringify({ error: { ...error, code: "context_length_exceeded" }, echo: input });

  test("gets the code of that with `auto`, for the clients that need it, before the head and in the stream", async () => {
    await using both = await openBoth("auto");
    const { ask, gate } = both;
    expect(await ask(codex, { input: "a" })).toEqual({ status: 400, text: marked("a") });
    expect(await ask("opencode/1.18.33", { input: "early", stream: true })).toEqual({
      status: 400,
      text: marked("early"),
    });
    expect(await ask(codex, { input: "a", stream: true })).toEqual({
      status: 200,
      text: failed("context_length_exceeded"),
    });
    expect(await ask(codex, { input: "a" }, "/v1/chat/completions")).toEqual({ status: 400, text: asItCame("a") });
    expect(await ask("curl/8", { input: "a" })).toEqual({ status: 400, text: asItCame("a") });
    const long = "x".repeat(64 * 1024);
    expect(await ask(codex, { input: long })).toEqual({ status: 400, text: asItCame(long) });
    const entries = await pollUntil(() => {
      const ended = gate.log.filter((entry) => entry["message"] === "Request ended");
      return ended.length === 6 && ended;
    });
    const rule = "full_context_code";
    expect(entries.map(({ clientRules }) => clientRules)).toEqual([rule, rule, rule, undefined, undefined, undefined]);
    const { requests } = await gate.admin.expectOk<{ requests: { changes: string[] }[] }>("GET", "/api/requests");
    expect(requests.map(({ changes }) => changes.includes(rule)).toReversed()).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
    ]);
  });

  test("gets it behind heartbeats too", async () => {
    await using both = await openBoth("auto", "0.05");
    const { status, text } = await both.ask(codex, { input: "late", stream: true });
    const failure: unknown = JSON.parse(text.trimEnd().split("data: ").at(-1) ?? "");
    expect(status).toBe(200);
    expect(failure).toMatchObject({
      type: "response.failed",
      response: { error: { code: "context_length_exceeded", message: expect.stringContaining(message) } },
    });
  });

  test("is the backend's own with the rules off", async () => {
    await using both = await openBoth("off");
    expect(await both.ask(codex, { input: "a" })).toEqual({ status: 400, text: asItCame("a") });
    expect(await both.ask(codex, { input: "a", stream: true })).toEqual({ status: 200, text: failed("server_error") });
  });
});

interface Advice {
  client: string;
  rules: string[];
  request_count: number;
  refused_count: number;
  read_anew_count: number;
  read_anew_tokens: number | null;
}

function isEdited({ path, userAgent, body }: Recording["requests"][number], setting: ClientRules): boolean {
  const rewrite = rewriterOf(rewriteRules({ clientRules: setting, maxOutputTokens: 64_000 }));
  const client = { userAgent, enginesOf: () => ["vllm" as const] };
  return textOf(rewrite(path, Buffer.from(JSON.stringify(body)), client)).body !== undefined;
}

const readAnew = (read: readonly Read[]): Read[] =>
  read.filter(({ tokens, cached, refused }) => !refused && cached * 2 < tokens);
const notCached = (read: readonly Read[]): number => read.reduce((sum, { tokens, cached }) => sum + tokens - cached, 0);

test.each(recordings)("of $program, as it was recorded, those requests count that rules mend", async (recording) => {
  const { requests } = recording;
  const off = await lead(recording, "off");
  const anew = readAnew(off.read);
  const refused = off.read.filter((one) => one.refused);
  if (recording.program.startsWith("opencode")) {
    expect(off.rows).toEqual([]);
    return;
  }
  expect(off.rows).toHaveLength(1);
  const [row] = off.rows;
  expect(row).toMatchObject({
    client: requests[0]?.userAgent.split(" ", 1)[0],
    request_count: requests.length,
    refused_count: refused.length,
    read_anew_count: anew.length,
    // An engine that refused everything has reported nothing of its cache.
    read_anew_tokens: refused.length === requests.length ? null : notCached(anew),
  });
  expect(anew.length + refused.length).toBeGreaterThan(0);
  // Each rule that is named edits these requests, and none that is not.
  for (const rule of row?.rules ?? []) {
    expect(requests.some((request) => isEdited(request, [rule as never]))).toBe(true);
  }
  // With the rules, only the first is still read anew.
  const auto = await lead(recording, "auto");
  expect(auto.rows).toEqual([]);
  expect(auto.read.filter((one) => one.refused)).toEqual([]);
  expect(readAnew(auto.read)).toEqual(auto.read.slice(0, 1));
  if (anew.length > 1) expect(notCached(auto.read)).toBeLessThan(notCached(off.read) / 2);
});
