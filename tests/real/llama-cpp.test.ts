import { expect, test } from "bun:test";
import { fixedCatalog } from "../../src/config/catalog.ts";
import { catalogWith } from "../support/catalog.ts";
import { startTollgate } from "../support/tollgate.ts";
import { findWhyNot, readMetric, startBackend, untilReady } from "./backend.ts";
import { countedFor, post, valuesIn } from "./calls.ts";
import { describeBackend, type StartedBackend } from "./suite.ts";

interface Servers extends StartedBackend {
  embeddingsUrl: string;
}

async function start(): Promise<Servers> {
  const backend = startBackend("llama-cpp", ["python", "server.py"]);
  const [, url = "", embeddingsUrl = ""] = await untilReady(backend, () =>
    /^listening (\S+) (\S+)$/m.exec(backend.output()),
  );
  return { ...backend, url, embeddingsUrl };
}

describeBackend({
  name: "llama-cpp",
  start,
  generated: async (url) => ({
    input: await readMetric(url, "llamacpp:prompt_tokens_total"),
    output: await readMetric(url, "llamacpp:tokens_predicted_total"),
  }),
  running: (url) => readMetric(url, "llamacpp:requests_processing"),
  toolFields: { tool_choice: "required", logit_bias: { "<tool_call>\n": 100 } },
  isContinuous: false,
  normalize: (text) =>
    text.replaceAll(/"(id|created)":("[^"]*"|\d+)/g, "").replaceAll(/"timings":\{[^}]*\}/g, '"timings":{}'),
});

test.skipIf(findWhyNot("llama-cpp") !== undefined)(
  "llama-cpp: limits are charged for each of n choices and each prompt of a stream",
  async () => {
    await using backend = await start();
    await using gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url });
    const key = await gate.admin.createKey("limited", { tokens_per_day: 1e9 });
    const common = { model: "tiny", max_tokens: 7, stream: true };
    const messages = [{ role: "user", content: "Hi there" }];
    for (const [path, body] of [
      ["/v1/chat/completions", { ...common, messages, n: 2 }],
      ["/v1/completions", { ...common, prompt: "Hi there", n: 2 }],
      ["/v1/completions", { ...common, prompt: ["Hi there", "You"] }],
    ] as const) {
      await (await post(gate.url, key.key, { path, body })).text();
    }
    const generated =
      (await readMetric(backend.url, "llamacpp:prompt_tokens_total")) +
      (await readMetric(backend.url, "llamacpp:tokens_predicted_total"));
    const own = (await gate.admin.listKeys()).find(({ id }) => id === key.id);
    expect(own?.used["tokens_per_day"]).toBe(generated);
  },
);

test.skipIf(findWhyNot("llama-cpp") !== undefined)(
  "llama-cpp: continuous counts streams with several choices and prompts, and those that are cut, and changes nothing",
  async () => {
    await using backend = await start();
    const settings = { PROXY_FORCE_STREAM_USAGE: "continuous", PROXY_HAN_GUARD: "off" };
    await using gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url, ...settings });
    const common = { model: "tiny", max_tokens: 9, stream: true, temperature: 0, seed: 1 };
    const messages = [{ role: "user", content: "Hi there" }];
    const send = async (path: string, body: Record<string, unknown>) =>
      (await post(gate.url, gate.key, { path, body })).text();
    // Its first response tells what it is.
    await send("/v1/completions", { ...common, prompt: "Hi", max_tokens: 1 });
    const generated = async () => ({
      input: await readMetric(backend.url, "llamacpp:prompt_tokens_total"),
      output: await readMetric(backend.url, "llamacpp:tokens_predicted_total"),
    });
    for (const [path, body] of [
      ["/v1/chat/completions", { ...common, messages }],
      ["/v1/chat/completions", { ...common, messages, n: 2 }],
      ["/v1/completions", { ...common, prompt: "Hi there", n: 2 }],
      ["/v1/completions", { ...common, prompt: ["Hi there", "You"] }],
    ] as const) {
      const before = await generated();
      let text = "";
      const counted = await countedFor(gate, async () => (text = await send(path, body)));
      const after = await generated();
      expect(counted).toEqual({ input: after.input - before.input, output: after.output - before.output });
      // Those that end a choice have them unasked.
      for (const value of valuesIn(text))
        if (value["timings"] !== undefined) expect(value["choices"]).toMatchObject([{ finish_reason: "length" }]);
    }
    const leaving = new AbortController();
    const { input, output } = await countedFor(gate, async () => {
      const call = { path: "/v1/chat/completions", body: { ...common, messages, max_tokens: 16_000 } };
      const reader = (await post(gate.url, gate.key, call, leaving.signal)).body?.getReader();
      for (let events = 0; events < 5; events++) await reader?.read();
      leaving.abort();
    });
    expect([input > 0, output > 0]).toEqual([true, true]);
  },
);

test.skipIf(findWhyNot("llama-cpp") !== undefined)("llama-cpp: counts embeddings", async () => {
  await using backend = await start();
  await using gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.embeddingsUrl });
  const call = { path: "/v1/embeddings", body: { model: "tiny", input: "Hi there" } };
  const counted = await countedFor(gate, async () => (await post(gate.url, gate.key, call)).text());
  expect(counted).toEqual({
    input: await readMetric(backend.embeddingsUrl, "llamacpp:prompt_tokens_total"),
    output: 0,
  });
  expect(counted.input).toBeGreaterThan(0);
});

test.skipIf(findWhyNot("llama-cpp") !== undefined)(
  "llama-cpp: two servers with a model each are one gate, which counts what both do",
  async () => {
    await using backend = await start();
    const backends = [
      { name: "text", url: backend.url },
      { name: "embeddings", url: backend.embeddingsUrl },
    ];
    const models = [
      { name: "chat-model", servedAs: "tiny", aliases: ["claude-*"], backends: ["text"] },
      { name: "embed-model", servedAs: "tiny", backends: ["embeddings"] },
    ];
    await using gate = await startTollgate({}, { catalog: fixedCatalog(catalogWith(backends, models)) });
    const chat = { max_tokens: 7, messages: [{ role: "user", content: "Hi there" }] };
    const calls = [
      { path: "/v1/chat/completions", body: { model: "chat-model", ...chat } },
      { path: "/v1/messages", body: { model: "claude-opus", stream: true, ...chat } },
      { path: "/v1/embeddings", body: { model: "embed-model", input: "Hi there" } },
    ];
    const counted = { input: 0, output: 0 };
    for (const call of calls) {
      const one = await countedFor(gate, async () => (await post(gate.url, gate.key, call)).text());
      counted.input += one.input;
      counted.output += one.output;
    }
    const [text = 0, embedded = 0] = await Promise.all(
      backends.map(({ url }) => readMetric(url, "llamacpp:prompt_tokens_total")),
    );
    expect([text > 0, embedded > 0]).toEqual([true, true]);
    expect(await readMetric(backend.embeddingsUrl, "llamacpp:tokens_predicted_total")).toBe(0);
    expect(counted).toEqual({
      input: text + embedded,
      output: await readMetric(backend.url, "llamacpp:tokens_predicted_total"),
    });
  },
);
