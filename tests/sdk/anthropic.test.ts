import { beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { startSimulator } from "../support/simulator/simulator.ts";
import { startTollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";

let client: Anthropic;
const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url }));
beforeAll(() => {
  client = clientWith({});
});

function clientWith(headers: Record<string, string>, apiKey = gate.key): Anthropic {
  return new Anthropic({ apiKey, baseURL: gate.url, maxRetries: 0, defaultHeaders: headers });
}

const request = { model: "m", max_tokens: 5, messages: [{ role: "user" as const, content: "Hi" }] };

describe("the @anthropic-ai/sdk package", () => {
  test("gets a message, and its version header reaches the backend", async () => {
    backend.clear();
    const message = await client.messages.create(request);
    expect(message.content[0]?.type).toBe("text");
    expect(message.usage.output_tokens).toBe(5);
    const forwarded = await backend.nextRequest();
    expect(forwarded.header("anthropic-version")).toMatch(/^\d{4}-\d\d-\d\d$/);
    expect(forwarded.header("x-api-key")).toBeUndefined();
  });

  test("streams a message to its end", async () => {
    const message = await client.messages.stream(request).finalMessage();
    expect(message.stop_reason).not.toBeNull();
    expect(message.usage.output_tokens).toBe(5);
  });

  test("has its thinking budget forwarded unchanged", async () => {
    backend.clear();
    const thinking = { type: "enabled" as const, budget_tokens: 1024 };
    await client.messages.create({ ...request, max_tokens: 2048, thinking });
    expect((await backend.nextRequest()).json()).toMatchObject({ thinking });
  });

  test("counts tokens, which adds a request and no tokens", async () => {
    const before = await gate.readKey();
    const { max_tokens: _, ...counted } = request;
    expect((await client.messages.countTokens(counted)).input_tokens).toBeGreaterThan(0);
    const after = await gate.readKey();
    expect(after.total_request_count).toBe(before.total_request_count + 1);
    expect(after.total_input_tokens).toBe(before.total_input_tokens);
  });

  test("throws its authentication error for a wrong key", async () => {
    const error = await clientWith({}, "wrong").messages.create(request).catch(caught);
    expect(error).toBeInstanceOf(Anthropic.AuthenticationError);
  });

  test("throws its server error if the backend is down", async () => {
    const error = await clientWith({ "x-simulate": "reset-before-head" }).messages.create(request).catch(caught);
    expect(error).toBeInstanceOf(Anthropic.InternalServerError);
  });

  test.each(["die@3", "reset@4", "die-mid-frame@4"])("throws if a stream breaks: %s", async (script) => {
    const error = await clientWith({ "x-simulate": script }).messages.stream(request).finalMessage().catch(caught);
    expect(error).toBeInstanceOf(Error);
  });
});

test("a backend that answers a stream with a whole message, after comments, gives a client its message", async () => {
  const content = [
    { type: "thinking", thinking: "Hm.", signature: "s" },
    { type: "text", text: "Good\nday" },
    { type: "tool_use", id: "t1", name: "look", input: { at: ["it"] } },
  ];
  const usage = { input_tokens: 11, output_tokens: 7 };
  const head = { id: "msg_1", type: "message", role: "assistant", model: "m" };
  const whole = { ...head, content, stop_reason: "tool_use", stop_sequence: null, usage };
  await using slow = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch() {
      await Bun.sleep(300);
      return new Response(JSON.stringify(whole, null, 2), { headers: { "content-type": "application/json" } });
    },
  });
  await using waiting = await startTollgate({ PROXY_UPSTREAM_URL: slow.url.origin, PROXY_SSE_KEEPALIVE: "0.1" });
  const patient = new Anthropic({ apiKey: waiting.key, baseURL: waiting.url, maxRetries: 0 });
  const texts: string[] = [];
  const stream = patient.messages.stream(request).on("text", (text) => texts.push(text));
  const message = await stream.finalMessage();
  expect(message).toMatchObject(whole);
  expect(texts.join("")).toBe("Good\nday");
  const counted = await waiting.readKey();
  expect([counted.total_input_tokens, counted.total_output_tokens]).toEqual([11, 7]);
});

function caught(error: unknown): unknown {
  return error;
}

describe("a key with limits", () => {
  const create = (fields: object) => gate.admin.createKey("limited", { ...fields });

  test("is not tried again on the day its tokens are used up", async () => {
    const { key } = await create({ tokens_per_day: 1 });
    await clientWith({}, key).messages.create(request);
    backend.clear();
    let calls = 0;
    const refused = await clientWith({}, key)
      .withOptions({ fetch: (...args) => (calls++, fetch(...args)) })
      .messages.create(request, { maxRetries: 3 })
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(Anthropic.APIError);
    const { status, type, message, headers } = refused as InstanceType<typeof Anthropic.APIError>;
    expect([status, type]).toEqual([402, "billing_error"]);
    expect(message).toContain("limited to 1 token per day");
    expect(headers?.has("retry-after")).toBe(false);
    expect(calls).toBe(1);
    expect(backend.requests()).toEqual([]);
  });
});
