import { afterAll, beforeAll, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { type Simulator, startSimulator } from "../../support/simulator/simulator.ts";
import { rejectionOf } from "../../support/rejection.ts";

let simulator: Simulator;
let anthropic: Anthropic;
beforeAll(() => {
  simulator = startSimulator({ maxOutputTokens: 50 });
  anthropic = new Anthropic({ baseURL: simulator.url, apiKey: "none", maxRetries: 0 });
});
afterAll(() => simulator.stop());

const request = {
  model: "any",
  max_tokens: 10,
  system: "Be brief.",
  messages: [{ role: "user" as const, content: "What is a toll gate?" }],
};
const tools = [
  {
    name: "get_weather",
    input_schema: { type: "object" as const, properties: { city: { type: "string" }, hourly: { type: "boolean" } } },
  },
];

test("a message has text, a stop reason and usage", async () => {
  const message = await anthropic.messages.create(request);
  expect(message.id).toMatch(/^msg_[0-9a-f]{32}$/);
  expect(message.content).toMatchObject([{ type: "text", text: expect.stringMatching(/^A toll gate/) }]);
  expect(message.stop_reason).toBe("max_tokens");
  expect(message.usage).toMatchObject({ input_tokens: 9, output_tokens: 10 });
});

test("cached input comes beside the input, in streams too", async () => {
  const options = { headers: { "x-simulate": "usage=12,34,50" } };
  const whole = await anthropic.messages.create(request, options);
  const streamed = await anthropic.messages.stream(request, options).finalMessage();
  for (const { usage } of [whole, streamed]) {
    expect(usage).toMatchObject({ input_tokens: 12, cache_read_input_tokens: 50, output_tokens: 34 });
  }
});

test("a model that stops by itself reports end_turn", async () => {
  const message = await anthropic.messages.create({ ...request, max_tokens: 4096 });
  expect(message.stop_reason).toBe("end_turn");
  expect(message.usage.output_tokens).toBe(50);
});

test("a stream has the same content as the whole message", async () => {
  const whole = await anthropic.messages.create(request);
  const streamed = await anthropic.messages.stream(request).finalMessage();
  expect(streamed.content).toMatchObject(whole.content);
  expect(streamed.stop_reason).toBe(whole.stop_reason);
  expect(streamed.usage).toMatchObject({ input_tokens: 9, output_tokens: 10 });
});

test("a stream reports input tokens first and output tokens last", async () => {
  const usages: unknown[] = [];
  const types: string[] = [];
  for await (const event of await anthropic.messages.create({ ...request, stream: true })) {
    if (types.at(-1) !== event.type) types.push(event.type);
    if (event.type === "message_start") usages.push(event.message.usage);
    if (event.type === "message_delta") usages.push(event.usage);
  }
  expect(usages).toEqual([{ input_tokens: 9, output_tokens: 0 }, { output_tokens: 10 }]);
  expect(types).toEqual([
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
});

test("a tool is called with valid input, streamed or whole", async () => {
  const whole = await anthropic.messages.create({ ...request, tools });
  const streamed = await anthropic.messages.stream({ ...request, tools }).finalMessage();
  for (const message of [whole, streamed]) {
    expect(message.stop_reason).toBe("tool_use");
    expect(message.content).toMatchObject([
      { type: "tool_use", name: "get_weather", input: { city: "Seoul", hourly: true } },
    ]);
  }
  expect(streamed.usage.output_tokens).toBe(whole.usage.output_tokens);
});

test("a tool's result gets text", async () => {
  const result = { type: "tool_result" as const, tool_use_id: "toolu_1", content: "Rain" };
  const messages = [...request.messages, { role: "user" as const, content: [result] }];
  const message = await anthropic.messages.create({ ...request, tools, messages });
  expect(message.content[0]?.type).toBe("text");
});

test("a thinking budget limits the thinking that the template requests", async () => {
  const fields = {
    ...request,
    max_tokens: 40,
    thinking: { type: "enabled" as const, budget_tokens: 6 },
    chat_template_kwargs: { thinking: true },
  };
  const message = await anthropic.messages.create(fields);
  expect(message.content).toMatchObject([
    { type: "text", text: expect.stringMatching(/^<think>(\S+ ){3}\S+<\/think>/) },
  ]);
});

test("count_tokens reports input tokens and generates nothing", async () => {
  const { input_tokens } = await anthropic.messages.countTokens(request);
  expect(input_tokens).toBe(9);
  expect(simulator.requests().at(-1)?.path).toBe("/v1/messages/count_tokens");
});

test("errors have this API's format", async () => {
  const overloaded = anthropic.messages.create(request, { headers: { "x-simulate": "status=529" } });
  expect(await rejectionOf(overloaded)).toMatchObject({ status: 529, type: "overloaded_error" });
});

test("a stream that breaks is an error for the client, not a short message", async () => {
  const broken = anthropic.messages.stream(request, { headers: { "x-simulate": "die@6" } });
  expect(await rejectionOf(broken.finalMessage())).toBeInstanceOf(Error);
});

test("thinking has a block of its own before the text or the tool, with events of every type in a stream", async () => {
  const thinking = { type: "enabled" as const, budget_tokens: 3 };
  const asked = { ...request, max_tokens: 12, thinking };
  const whole = await anthropic.messages.create(asked);
  expect(whole.content).toMatchObject([
    { type: "thinking", thinking: "The user wants", signature: expect.stringMatching(/./) },
    { type: "text", text: expect.stringMatching(/^A toll gate/) },
  ]);
  expect(whole.usage.output_tokens).toBe(12);
  const streamed = await anthropic.messages.stream(asked).finalMessage();
  expect(streamed.content).toMatchObject(whole.content);
  expect(streamed.usage.output_tokens).toBe(12);
  const seen: string[] = [];
  for await (const event of await anthropic.messages.create({ ...asked, tools, stream: true })) {
    const name = event.type === "content_block_delta" ? event.delta.type : event.type;
    if (seen.at(-1) !== name) seen.push(name);
  }
  expect(seen).toEqual([
    "message_start",
    "content_block_start",
    "thinking_delta",
    "signature_delta",
    "content_block_stop",
    "content_block_start",
    "input_json_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
});
