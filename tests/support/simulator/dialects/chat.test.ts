import { beforeAll, expect, test } from "bun:test";
import OpenAI, { NotFoundError } from "openai";
import { startSimulator } from "../simulator.ts";
import { rejectionOf } from "../../rejection.ts";
import { shared } from "../../shared.ts";

let openai: OpenAI;
const simulator = shared(() => startSimulator({ models: ["m"] }));
beforeAll(() => {
  openai = new OpenAI({ baseURL: `${simulator.url}/v1`, apiKey: "none", maxRetries: 0 });
});

const messages = [{ role: "user" as const, content: "What is a toll gate?" }];
const tools = [
  {
    type: "function" as const,
    function: {
      name: "get_weather",
      parameters: { type: "object", properties: { city: { type: "string" }, days: { type: "integer" } } },
    },
  },
];

test("a stream has the same content as the whole completion", async () => {
  const whole = await openai.chat.completions.create({ model: "m", messages, max_tokens: 80 });
  const stream = openai.chat.completions.stream({
    model: "m",
    messages,
    max_tokens: 80,
    stream_options: { include_usage: true },
  });
  const streamed = await stream.finalChatCompletion();
  expect(streamed.choices[0]?.message.content).toBe(whole.choices[0]?.message.content);
  expect(streamed.choices[0]?.finish_reason).toBe("length");
  expect(streamed.usage).toEqual(whole.usage);
});

test("thinking precedes the content and is longer at maximum effort", async () => {
  const think = async (chat_template_kwargs: object) => {
    const fields = { model: "m", messages, max_tokens: 40, chat_template_kwargs };
    const { content } = (await openai.chat.completions.create(fields)).choices[0]?.message ?? {};
    return /^<think>(.*?)<\/think>\n\n\S/s.exec(content ?? "")?.[1]?.split(" ").length ?? 0;
  };
  expect(await think({ thinking: true })).toBe(18);
  expect(await think({ thinking: true, reasoning_effort: "max" })).toBe(28);
  expect(await think({ enable_thinking: true })).toBe(18);
  expect(await think({ thinking: false })).toBe(0);
  expect(await think({})).toBe(0);
});

test("a request with tools gets a tool call with valid arguments, streamed or whole", async () => {
  const whole = await openai.chat.completions.create({ model: "m", messages, tools });
  const call = whole.choices[0]?.message.tool_calls?.[0];
  expect(whole.choices[0]?.finish_reason).toBe("tool_calls");
  expect(call).toMatchObject({ type: "function", function: { name: "get_weather" } });
  const streamed = await openai.chat.completions
    .stream({ model: "m", messages, tools, stream_options: { include_usage: true } })
    .finalChatCompletion();
  const [streamedCall] = streamed.choices[0]?.message.tool_calls ?? [];
  if (streamedCall?.type !== "function") throw new Error("No function call");
  expect(JSON.parse(streamedCall.function.arguments)).toEqual({ city: "Seoul", days: 7 });
  expect(streamed.choices[0]?.finish_reason).toBe("tool_calls");
  expect(streamed.usage).toEqual(whole.usage);
});

test("a request that brings a tool's result or forbids tools gets text", async () => {
  const result = [...messages, { role: "tool" as const, tool_call_id: "1", content: "Rain" }];
  for (const fields of [{ messages: result }, { messages, tool_choice: "none" as const }]) {
    const completion = await openai.chat.completions.create({ model: "m", tools, ...fields });
    expect(completion.choices[0]?.message.content).toBeString();
  }
});

test("a model that is not served gets a 404; its name is case-sensitive", async () => {
  for (const model of ["M", "gpt-4o"]) {
    const error = await rejectionOf(openai.chat.completions.create({ model, messages }));
    expect(error).toBeInstanceOf(NotFoundError);
  }
});

test("a model that calls no tools has text, whatever is offered", async () => {
  using simple = startSimulator({ callsTools: false });
  const client = new OpenAI({ baseURL: `${simple.url}/v1`, apiKey: "none", maxRetries: 0 });
  const { choices } = await client.chat.completions.create({ model: "m", messages, tools });
  expect(choices[0]).toMatchObject({ finish_reason: "stop", message: { tool_calls: [] } });
  expect(choices[0]?.message.content).not.toBeEmpty();
});
