import { beforeAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { startSimulator } from "../simulator.ts";
import { shared } from "../../shared.ts";

let openai: OpenAI;
const simulator = shared(() => startSimulator());
beforeAll(() => {
  openai = new OpenAI({ baseURL: `${simulator.url}/v1`, apiKey: "none", maxRetries: 0 });
});

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

test("a conversation is compacted to an item that stands for it", async () => {
  const compact = async (body: object): Promise<Response> =>
    await fetch(`${simulator.url}/v1/responses/compact`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const {
    id,
    created_at: createdAt,
    ...compaction
  } = (await (await compact(request)).json()) as Record<string, unknown>;
  expect([typeof id, typeof createdAt]).toEqual(["string", "number"]);
  expect(compaction).toMatchObject({
    object: "response.compaction",
    output: [{ type: "compaction", id: expect.any(String), encrypted_content: expect.any(String) }],
    usage: { input_tokens: 5, output_tokens: 64, total_tokens: 69 },
  });
  expect((await compact({ input: request.input })).status).toBe(400);
});

/** The compliance suite of Open Responses refuses a response that lacks one of them. */
const members =
  "background completed_at created_at error frequency_penalty id incomplete_details instructions max_output_tokens " +
  "max_tool_calls metadata model object output parallel_tool_calls presence_penalty previous_response_id " +
  "prompt_cache_key reasoning safety_identifier service_tier status store temperature text tool_choice tools " +
  "top_logprobs top_p truncation usage";

test("a response has every member of Open Responses, and repeats what was asked for, whole and in each event of a stream", async () => {
  const asked = { ...request, max_output_tokens: 4096, temperature: 0.5, metadata: { a: "b" }, top_logprobs: 2 };
  const plain = { type: "function" as const, name: "plain", parameters: null, strict: null };
  const send = async (body: object): Promise<Response> =>
    await fetch(`${simulator.url}/v1/responses`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-simulate": "tokens=3" },
      body: JSON.stringify({ ...asked, tools: [plain], tool_choice: "none", ...body }),
    });
  const whole = (await (await send({})).json()) as Record<string, unknown>;
  expect(Object.keys(whole).toSorted()).toEqual(members.split(" "));
  expect(whole).toMatchObject({ temperature: 0.5, metadata: { a: "b" }, top_logprobs: 2, tool_choice: "none" });
  expect(whole["tools"]).toEqual([{ ...plain, description: null }]);
  expect(whole["reasoning"]).toEqual({ effort: null, summary: null });
  const stream = await (await send({ stream: true })).text();
  const events = stream
    .matchAll(/^data: (\{.*\})$/gm)
    .map(([, json = ""]) => JSON.parse(json) as { response?: object });
  const responses = [...events].flatMap(({ response }) => response ?? []);
  expect(responses).toHaveLength(3);
  for (const response of responses) expect(Object.keys(response).toSorted()).toEqual(members.split(" "));
});
