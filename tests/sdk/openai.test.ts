import { beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { startSimulator } from "../support/simulator/simulator.ts";
import { startTollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";

let client: OpenAI;
const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url, PROXY_NONSTREAM_READ_TIMEOUT: "8" }));
beforeAll(() => {
  client = clientWith({});
});

function clientWith(headers: Record<string, string>, apiKey = gate.key): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${gate.url}/v1`, maxRetries: 0, defaultHeaders: headers });
}

const request = { model: "m", max_tokens: 5, messages: [{ role: "user" as const, content: "Hi" }] };

describe("the openai package", () => {
  test("completes a chat", async () => {
    const completion = await client.chat.completions.create(request);
    expect(completion.choices[0]?.message.content).toBeString();
    expect(completion.usage?.completion_tokens).toBe(5);
  });

  test("streams a chat, with usage if requested", async () => {
    const stream = await client.chat.completions.create({
      ...request,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    expect(text).not.toBe("");
    expect(usage?.completion_tokens).toBe(5);
  });

  test("streams a response", async () => {
    const types: string[] = [];
    const stream = await client.responses.create({ model: "m", input: "Hi", stream: true, max_output_tokens: 5 });
    for await (const event of stream) types.push(event.type);
    expect(types[0]).toBe("response.created");
    expect(types.at(-1)).toBe("response.incomplete");
  });

  test("lists models and embeds text", async () => {
    const models = await client.models.list();
    expect(models.data.length).toBeGreaterThan(0);
    const { data } = await client.embeddings.create({ model: "m", input: "Hi" });
    expect(data[0]?.embedding.length).toBeGreaterThan(0);
  });

  test("throws its authentication error for a wrong key", async () => {
    const error = await clientWith({}, "wrong").models.list().catch(caught);
    expect(error).toBeInstanceOf(OpenAI.AuthenticationError);
    expect((error as InstanceType<typeof OpenAI.AuthenticationError>).code).toBe("invalid_api_key");
  });

  test("throws its server error if the backend is down", async () => {
    const error = await clientWith({ "x-simulate": "reset-before-head" })
      .chat.completions.create(request)
      .catch(caught);
    expect(error).toBeInstanceOf(OpenAI.InternalServerError);
    expect((error as InstanceType<typeof OpenAI.InternalServerError>).status).toBe(502);
  });

  test("does not repeat a request that timed out", async () => {
    backend.clear();
    const patient = new OpenAI({
      apiKey: gate.key,
      baseURL: `${gate.url}/v1`,
      maxRetries: 3,
      defaultHeaders: { "x-simulate": "slow-head=forever" },
    });
    const error = await patient.chat.completions.create(request).catch(caught);
    expect((error as InstanceType<typeof OpenAI.APIError>).status).toBe(504);
    expect(backend.requests()).toHaveLength(1);
  });

  test.each(["die@2", "reset@2", "die-mid-frame@3"])("throws if a stream breaks: %s", async (script) => {
    const stream = await clientWith({ "x-simulate": `gap=300ms@1; ${script}` }).chat.completions.create({
      ...request,
      stream: true,
    });
    const read = async (): Promise<void> => {
      for await (const _ of stream);
    };
    expect(await read().catch(caught)).toBeInstanceOf(Error);
  });
});

function caught(error: unknown): unknown {
  return error;
}

describe("a key with limits", () => {
  const create = (fields: object) => gate.admin.createKey("limited", { ...fields });

  test("waits for a place of its key, and is not tried again", async () => {
    backend.clear();
    const { key } = await create({ max_concurrency: 1 });
    const first = clientWith({ "x-simulate": "slow-head=1.2s" }, key).chat.completions.create(request).asResponse();
    await backend.nextRequest();
    const sentAt = performance.now();
    const second = await clientWith({}, key).chat.completions.create(request, { maxRetries: 0 });
    expect(performance.now() - sentAt).toBeGreaterThan(950);
    expect(second.id).toBeString();
    await first;
  });

  test("is not tried again on the day its tokens are used up", async () => {
    const { key } = await create({ tokens_per_day: 1 });
    await clientWith({}, key).chat.completions.create(request);
    backend.clear();
    let calls = 0;
    const refused = await clientWith({}, key)
      .withOptions({ fetch: (...args) => (calls++, fetch(...args)) })
      .chat.completions.create(request, { maxRetries: 3 })
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(OpenAI.APIError);
    const { status, code, type, message, headers } = refused as InstanceType<typeof OpenAI.APIError>;
    expect([status, code, type]).toEqual([402, "insufficient_quota", "insufficient_quota"]);
    expect(message).toContain("limited to 1 token per day");
    expect(headers?.has("retry-after")).toBe(false);
    expect(calls).toBe(1);
    expect(backend.requests()).toEqual([]);
  });

  test("says under /v1/responses when the limit of a day resets, as Codex reads it", async () => {
    const { key } = await create({ tokens_per_day: 1 });
    const ask = { model: "m", input: "Hi", max_output_tokens: 5 };
    await clientWith({}, key).responses.create(ask);
    let calls = 0;
    const patient = clientWith({}, key).withOptions({
      maxRetries: 3,
      fetch: (...args) => (calls++, fetch(...args)),
    });
    for (const stream of [false, true]) {
      const refused = await patient.responses.create({ ...ask, stream }).catch(caught);
      expect(refused).toBeInstanceOf(OpenAI.RateLimitError);
      const { type, code, error, headers } = refused as InstanceType<typeof OpenAI.RateLimitError>;
      expect([type, code]).toEqual(["usage_limit_reached", "tokens_per_day"]);
      expect(error).toMatchObject({ resets_at: expect.any(Number), resets_in_seconds: expect.any(Number) });
      expect(headers.has("retry-after")).toBe(false);
    }
    expect(calls).toBe(2);
  });
});
