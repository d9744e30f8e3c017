import { describe, expect, test } from "bun:test";
import { fullContextFilter, markFullContext } from "../../../src/proxy/response/full-context.ts";

const code = '"code":"context_length_exceeded"';
const marked = (body: string): string | undefined => {
  const bytes = markFullContext(Buffer.from(body), "body");
  return bytes && Buffer.from(bytes).toString();
};

/** Bodies as the engines send them, with the place at which the code belongs. */
const vllm =
  '{"error":{"message":"This model\'s maximum context length is 32768 tokens. However, you requested 0 output tokens and your prompt contains at least 32769 input tokens, for a total of at least 32769 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=32769)","type":"BadRequestError","param":"input_tokens","code":400}}';
const recorded: Record<string, string> = {
  "vLLM 0.30": vllm,
  "vLLM 0.30, by characters":
    '{"error":{"message":"This model\'s maximum context length is 32768 tokens. However, you requested 32768 output tokens and your prompt contains 31800 characters (more than 0 characters, which is the upper bound for 0 input tokens). Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_text, value=31800)","type":"BadRequestError","param":"input_text","code":400}}',
  "vLLM 0.16":
    '{"error":{"message":"You passed 9000 input tokens and requested 0 output tokens. However, the model\'s context length is only 8192 tokens, resulting in a maximum input length of 8192 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=9000)","type":"BadRequestError","param":"input_tokens","code":400}}',
  "vLLM 0.16, by characters":
    '{"error":{"message":"You passed 900000 input characters and requested 0 output tokens. However, the model\'s context length is only 8192 tokens, resulting in a maximum input length of 8192 tokens (at most 819200 characters). Please reduce the length of the input prompt. (parameter=input_text, value=900000)","type":"BadRequestError","param":"input_text","code":400}}',
  "vLLM 0.14":
    '{"error":{"message":"The engine prompt length 227861 exceeds the max_model_len 131072. Please reduce prompt.","type":"invalid_request_error","param":"input","code":400}}',
  "vLLM 0.11":
    '{"error":{"message":"This model\'s maximum context length is 32768 tokens. However, your request has 40000 input tokens. Please reduce the length of the input messages. None","type":"BadRequestError","param":null,"code":400}}',
  "vLLM, of its output too":
    '{"error":{"message":"\'max_tokens\' or \'max_completion_tokens\' is too large: 8000. This model\'s maximum context length is 4096 tokens and your request has 2778 input tokens (8000 > 4096 - 2778). None","type":"BadRequestError","param":null,"code":400}}',
  "vLLM, of its engine":
    '{"error":{"message":"The decoder prompt (length 12324) is longer than the maximum model length of 8192. Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens. For image inputs, the number of image tokens depends on the number of images, and possibly their aspect ratios as well.","type":"BadRequestError","param":null,"code":400}}',
  "llama.cpp":
    '{"error":{"code":400,"message":"request (39048 tokens) exceeds the available context size (32768 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":39048,"n_ctx":32768}}',
  "llama.cpp, with context shift":
    '{"error":{"code":400,"message":"input (9739 tokens) is larger than the max context size (8192 tokens). skipping","type":"exceed_context_size_error","n_prompt_tokens":9739,"n_ctx":8192}}',
  "llama.cpp b6000":
    '{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}',
  oMLX: '{"error":{"message":"Prompt too long: 35057 tokens exceeds max context window of 32768 tokens","type":"invalid_request_error","param":null,"code":null}}',
  vMLX: '{"error":{"message":"prompt_too_long: tokenized prompt has 9000 tokens, max prompt/context tokens is 8192","type":"invalid_request_error","code":"prompt_too_long"}}',
};

const atTop: Record<string, string> = {
  SGLang: "The input (291793 tokens) is longer than the model's context length (262144 tokens).",
  "SGLang, of its output too":
    "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 131373 tokens: 130373 tokens from the input messages and 1000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
  "TensorRT-LLM": "The sum of prompt length (72417.0), query length (0) should not exceed max_num_tokens (69632)",
  "TensorRT-LLM with its own engine":
    "The sum of prompt length (4000) and query length (0) max_tokens (2048) should not exceed max_seq_len (4096)",
  "TensorRT-LLM, nothing left":
    "`default_max_tokens` (-12) must be greater than 0, `default_max_tokens` (-12) = max_seq_len (4096) - `splited_prompt_len` (4108) - `query_token_len` (0)",
  "vLLM 0.10": "The engine prompt length 227861 exceeds the max_model_len 131072. Please reduce prompt.",
};

describe("a refusal of a full context", () => {
  test.each(Object.entries(recorded))("of %s gets the code, and keeps every other byte", (_, body) => {
    const expected = body.includes('"code":') ? body.replace(/"code":[^,}]+/, code) : `${body.slice(0, -2)},${code}}}`;
    expect(marked(body)).toBe(expected);
    expect(marked(expected)).toBeUndefined();
  });

  test("gets the code where there is none", () => {
    const body = '{ "error" : { "message" : "the request exceeds the available context size, try increasing it" } }';
    expect(marked(body)).toBe(body.replace(" } }", `,${code} } }`));
  });

  test.each(Object.entries(atTop))(
    "of %s gets the code, and an error that has it, as agents read it there",
    (_, message) => {
      const body = (own: string, rest = ""): string =>
        `{"object":"error","message":${JSON.stringify(message)},"type":"BadRequestError","param":null,"code":${own}${rest}}`;
      const error = `,"error":{"message":${JSON.stringify(message)},"code":"context_length_exceeded"}`;
      expect(marked(body("400"))).toBe(body('"context_length_exceeded"', error));
    },
  );

  const [, sentence = ""] = /"message":"([^"]*)"/.exec(vllm) ?? [];
  test.each([
    ["in a longer sentence", { error: { message: `Tool failed: ${sentence}` } }],
    ["with more behind it", { error: { message: `${sentence} Try again` } }],
    ["on a line of its own", { error: { message: `Invalid input:\n${sentence}\nas it came` } }],
    ["in an echoed prompt", { error: { message: "Invalid input", input: sentence } }],
    ["in a tool's output", { error: { message: "Invalid", body: { error: { message: sentence } } } }],
    ["in another member", { message: sentence }],
    ["of another object", { object: "response", message: sentence }],
    ["in a detail", { detail: sentence }],
    ["as the error", { error: sentence }],
    ["in a list", [{ error: { message: sentence } }]],
    ["without its numbers", { error: { message: sentence.replaceAll(/\d+/g, "N") } }],
  ])("stays as it is where an engine's words stand %s", (_, body) => {
    expect(marked(JSON.stringify(body))).toBeUndefined();
  });

  test.each(["", "{", "null", `${vllm}x`, vllm.slice(0, -1)])("%j is left alone", (body) => {
    expect(marked(body)).toBeUndefined();
  });
});

describe("the response.failed of a stream", () => {
  const failed = (error: object, type = "response.failed") =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: 3, response: { id: "r", status: "failed", error } })}\n\n`;
  const message = "The input (291793 tokens) is longer than the model's context length (262144 tokens).";
  const pass = (event: string) => {
    let found = 0;
    const filter = fullContextFilter(() => (found += 1));
    const out = [...filter.event(Buffer.from(event)), ...filter.end(Buffer.alloc(0))];
    return { text: Buffer.concat(out).toString(), found };
  };

  test("gets the code", () => {
    const event = failed({ code: "server_error", message });
    expect(pass(event)).toEqual({ text: failed({ code: "context_length_exceeded", message }), found: 1 });
    expect(pass(failed({ message })).text).toBe(failed({ message, code: "context_length_exceeded" }));
    expect(pass(event.replaceAll("\n", "\r\n")).found).toBe(1);
  });

  test.each([
    ["another error", failed({ code: "server_error", message: "The engine died" })],
    ["another event", failed({ code: "server_error", message }, "response.completed")],
    ["the words in its output", failed({ code: "server_error", message: `Tool: ${message}` })],
    [
      "a text with all of it",
      `data: ${JSON.stringify({ type: "response.output_text.delta", delta: failed({ message }) })}\n\n`,
    ],
    ["data in several lines", failed({ message }).replace('"sequence_number"', '\ndata: "sequence_number"')],
    ["a comment", `: ${message}\n\n`],
  ])("stays as it is: %s", (_, event) => {
    expect(pass(event)).toEqual({ text: event, found: 0 });
  });
});
