import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI, { NotFoundError } from "openai";
import { type Simulator, startSimulator } from "../../support/simulator/simulator.ts";
import { rejectionOf } from "../../support/rejection.ts";

let simulator: Simulator;
let openai: OpenAI;
beforeAll(() => {
  simulator = startSimulator({ models: ["m"] });
  openai = new OpenAI({ baseURL: `${simulator.url}/v1`, apiKey: "none", maxRetries: 0 });
});
afterAll(() => simulator.stop());

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

test("cached input is part of the input", async () => {
  const headers = { "x-simulate": "usage=12,34,5" };
  const { usage } = await openai.chat.completions.create({ model: "m", messages }, { headers });
  expect(usage).toMatchObject({ prompt_tokens: 12, total_tokens: 46, prompt_tokens_details: { cached_tokens: 5 } });
});

test("a completion has as many tokens as its limit allows and reports both", async () => {
  const completion = await openai.chat.completions.create({ model: "m", messages, max_tokens: 9 });
  expect(completion.id).toMatch(/^chatcmpl-[0-9a-f]{32}$/);
  expect(completion.choices[0]?.message.content?.split(" ")).toHaveLength(9);
  expect(completion.choices[0]?.finish_reason).toBe("length");
  expect(completion.usage).toEqual({ prompt_tokens: 6, completion_tokens: 9, total_tokens: 15 });
});

test("a completion without a limit stops by itself", async () => {
  const completion = await openai.chat.completions.create({ model: "m", messages });
  expect(completion.choices[0]?.finish_reason).toBe("stop");
  expect(completion.usage?.completion_tokens).toBe(64);
});

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

async function usagesOf(streamOptions?: object): Promise<unknown[]> {
  const options = streamOptions === undefined ? {} : { stream_options: streamOptions };
  const stream = await openai.chat.completions.create({
    model: "m",
    messages,
    max_tokens: 3,
    stream: true,
    ...options,
  });
  const usages: unknown[] = [];
  for await (const chunk of stream) usages.push([chunk.choices.length, chunk.usage?.completion_tokens]);
  return usages;
}

test("requested usage is in a chunk of its own without choices", async () => {
  const chunks = Array.from({ length: 5 }, () => [1, undefined]);
  expect(await usagesOf()).toEqual(chunks);
  expect(await usagesOf({ include_usage: false, continuous_usage_stats: true })).toEqual(chunks);
  expect(await usagesOf({ include_usage: true })).toEqual([...chunks, [0, 3]]);
});

test("continuous usage is in every chunk and grows", async () => {
  const usages = await usagesOf({ include_usage: true, continuous_usage_stats: true });
  expect(usages).toEqual([
    [1, 0],
    [1, 1],
    [1, 2],
    [1, 3],
    [1, 3],
    [0, 3],
  ]);
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

test("an invalid body gets a 400", async () => {
  for (const body of ["{", "[]", '{"model":"m","max_tokens":0,"messages":[]}', '{"model":"m","max_tokens":1.5}']) {
    const completion = await fetch(`${simulator.url}/v1/chat/completions`, { method: "POST", body });
    expect(completion.status).toBe(400);
    expect(await completion.json()).toHaveProperty("error.type", "BadRequestError");
  }
});

test("usage can be omitted, null or set by the script", async () => {
  const usage = async (script: string) => {
    const headers = { "x-simulate": script };
    return (await openai.chat.completions.create({ model: "m", messages }, { headers })).usage;
  };
  expect(await usage("no-usage")).toBeUndefined();
  expect(await usage("usage-null")).toBeNull();
  expect(await usage("usage=12,34")).toEqual({ prompt_tokens: 12, completion_tokens: 34, total_tokens: 46 });
});

test("a stream that breaks is an error for the client, not a short completion", async () => {
  const stream = await openai.chat.completions.create(
    { model: "m", messages, stream: true },
    { headers: { "x-simulate": "die@3" } },
  );
  let chunks = 0;
  const read = async () => {
    for await (const _ of stream) chunks++;
  };
  expect(await rejectionOf(read())).toBeInstanceOf(Error);
  // Bun loses what arrived right before the break (1.4.5).
  expect(chunks).toBeLessThanOrEqual(3);
});

test("a model that calls no tools has text, whatever is offered", async () => {
  using simple = startSimulator({ callsTools: false });
  const client = new OpenAI({ baseURL: `${simple.url}/v1`, apiKey: "none", maxRetries: 0 });
  const { choices } = await client.chat.completions.create({ model: "m", messages, tools });
  expect(choices[0]).toMatchObject({ finish_reason: "stop", message: { tool_calls: [] } });
  expect(choices[0]?.message.content).not.toBeEmpty();
});
