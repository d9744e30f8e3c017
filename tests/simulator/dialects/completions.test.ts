import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { type Simulator, startSimulator } from "../../support/simulator/simulator.ts";

let simulator: Simulator;
let openai: OpenAI;
beforeAll(() => {
  simulator = startSimulator();
  openai = new OpenAI({ baseURL: `${simulator.url}/v1`, apiKey: "none", maxRetries: 0 });
});
afterAll(() => simulator.stop());

const request = { model: "any", prompt: "Once upon a time", max_tokens: 12 };

test("a completion has text, a finish reason and usage", async () => {
  const completion = await openai.completions.create(request);
  expect(completion.id).toStartWith("cmpl-");
  expect(completion.choices[0]?.text.split(" ")).toHaveLength(12);
  expect(completion.choices[0]?.finish_reason).toBe("length");
  expect(completion.usage).toEqual({ prompt_tokens: 4, completion_tokens: 12, total_tokens: 16 });
});

test("a stream has the same content, the finish reason in the last token's chunk, and the requested usage", async () => {
  const whole = await openai.completions.create(request);
  const stream = await openai.completions.create({ ...request, stream: true, stream_options: { include_usage: true } });
  let text = "";
  const reasons: unknown[] = [];
  let usage: unknown;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.text ?? "";
    reasons.push(chunk.choices[0]?.finish_reason);
    usage = chunk.usage;
  }
  expect(text).toBe(whole.choices[0]?.text ?? "");
  expect(reasons.slice(-3)).toEqual([null, "length", undefined]);
  expect(usage).toEqual(whole.usage);
});

test("a prompt of token ids counts one token per id", async () => {
  const completion = await openai.completions.create({ ...request, prompt: [1, 2, 3, 4, 5, 6, 7] });
  expect(completion.usage?.prompt_tokens).toBe(7);
});

test("continuous usage grows with each chunk", async () => {
  const stream_options = { include_usage: true, continuous_usage_stats: true };
  const stream = await openai.completions.create({ ...request, max_tokens: 3, stream: true, stream_options });
  const counts: unknown[] = [];
  for await (const chunk of stream) counts.push(chunk.usage?.completion_tokens);
  expect(counts).toEqual([1, 2, 3, 3]);
});
