import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";

let simulator: Simulator;
let openai: OpenAI;
beforeAll(() => {
  simulator = startSimulator();
  openai = new OpenAI({ baseURL: `${simulator.url}/v1`, apiKey: "none", maxRetries: 0 });
});
afterAll(() => simulator.stop());

const request = { model: "any", input: "What is a toll gate?" };
const tools = [
  {
    type: "function" as const,
    name: "get_weather",
    strict: false,
    parameters: {
      type: "object",
      properties: { unit: { enum: ["C", "F"] }, cities: { type: "array", items: { type: "string" } } },
    },
  },
];

test("a response is completed and has text and usage", async () => {
  const response = await openai.responses.create(request);
  expect(response.status).toBe("completed");
  expect(response.output_text.split(" ")).toHaveLength(64);
  expect(response.usage).toMatchObject({ input_tokens: 5, output_tokens: 64, total_tokens: 69 });
});

test("a response that hits its limit is incomplete and gives the reason", async () => {
  const response = await openai.responses.create({ ...request, max_output_tokens: 5 });
  expect(response.status).toBe("incomplete");
  expect(response.incomplete_details).toEqual({ reason: "max_output_tokens" });
});

test("a stream sends every event in order and has the same content as the whole response", async () => {
  const whole = await openai.responses.create({ ...request, max_output_tokens: 6 });
  const stream = openai.responses.stream({ ...request, max_output_tokens: 6 });
  const types: string[] = [];
  const numbers: number[] = [];
  for await (const event of stream) {
    if (types.at(-1) !== event.type) types.push(event.type);
    numbers.push(event.sequence_number);
  }
  expect(types).toEqual([
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.incomplete",
  ]);
  expect(numbers).toEqual(numbers.map((_, index) => index));
  const streamed = await stream.finalResponse();
  expect(streamed.output_text).toBe(whole.output_text);
  expect(streamed.usage).toEqual(whole.usage);
});

test("a tool is called with valid arguments, streamed or whole", async () => {
  const whole = await openai.responses.create({ ...request, tools });
  const streamed = await openai.responses.stream({ ...request, tools }).finalResponse();
  for (const { output } of [whole, streamed]) {
    const [call] = output;
    if (call?.type !== "function_call") throw new Error("No function call");
    expect(call.name).toBe("get_weather");
    expect(JSON.parse(call.arguments)).toEqual({ unit: "C", cities: ["Seoul"] });
  }
  expect(streamed.usage).toEqual(whole.usage);
});

test("a tool's result gets text", async () => {
  const input = [{ type: "function_call_output" as const, call_id: "1", output: "Rain" }];
  const response = await openai.responses.create({ ...request, tools, input });
  expect(response.output_text).not.toBe("");
});
