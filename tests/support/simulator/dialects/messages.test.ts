import { beforeAll, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { startSimulator } from "../simulator.ts";
import { shared } from "../../shared.ts";

let anthropic: Anthropic;
const simulator = shared(() => startSimulator({ maxOutputTokens: 50 }));
beforeAll(() => {
  anthropic = new Anthropic({ baseURL: simulator.url, apiKey: "none", maxRetries: 0 });
});

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

test("a stream has the same content as the whole message", async () => {
  const whole = await anthropic.messages.create(request);
  const streamed = await anthropic.messages.stream(request).finalMessage();
  expect(streamed.content).toMatchObject(whole.content);
  expect(streamed.stop_reason).toBe(whole.stop_reason);
  expect(streamed.usage).toMatchObject({ input_tokens: 9, output_tokens: 10 });
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
