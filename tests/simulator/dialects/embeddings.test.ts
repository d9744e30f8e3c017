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

const embed = (input: string | string[] | number[], fields: object = {}) =>
  openai.embeddings.create({ model: "any", input, ...fields });
const vectors = async (...args: Parameters<typeof embed>) =>
  (await embed(...args)).data.map(({ embedding }) => embedding);

test("the same text has the same vector of length 1, another text a different one", async () => {
  const [first, again, other] = await vectors(["a text", "a text", "another text"]);
  expect(first).toHaveLength(384);
  expect(first).toEqual(again ?? []);
  expect(first).not.toEqual(other ?? []);
  expect(Math.hypot(...(first ?? []))).toBeCloseTo(1, 4);
});

test("floats and base64 encode the same numbers", async () => {
  // The client requests base64 by default.
  const [base64] = await vectors("a text", { dimensions: 8 });
  const [float] = await vectors("a text", { dimensions: 8, encoding_format: "float" });
  expect(float).toHaveLength(8);
  for (const [index, value] of (float ?? []).entries()) expect(base64?.[index]).toBeCloseTo(value, 6);
});

test("usage has input tokens and no output tokens", async () => {
  const { usage } = await embed([1, 2, 3, 4]);
  expect(usage).toMatchObject({ prompt_tokens: 4, total_tokens: 4, completion_tokens: 0 });
});

test("token ids of one text are one input", async () => {
  expect(await vectors([1, 2, 3])).toHaveLength(1);
});
