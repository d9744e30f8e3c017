import { describe, expect, test } from "bun:test";
import {
  createUsageParser,
  noStreamUsage,
  readEventUsage,
  readUsage,
  type StreamUsage,
  usageOfStream,
} from "../../../src/proxy/stream/usage.ts";
import { noUsage, type Usage } from "../../../src/domain/usage.ts";

const seen: Usage = { inputTokens: 3, outputTokens: 4 };

const readings: [name: string, value: unknown, input: number, output: number][] = [
  ["chat", { usage: { prompt_tokens: 5, completion_tokens: 2 } }, 5, 2],
  ["messages", { usage: { input_tokens: 5, output_tokens: 2 } }, 5, 2],
  ["embeddings", { usage: { prompt_tokens: 5, total_tokens: 5 } }, 5, 4],
  ["message_start", { message: { usage: { input_tokens: 5, output_tokens: 1 } } }, 5, 1],
  ["response.completed", { response: { usage: { input_tokens: 5, output_tokens: 2 } } }, 5, 2],
  ["message_delta", { delta: {}, usage: { output_tokens: 9 } }, 3, 9],
  [
    "both names, one of them zero",
    { usage: { prompt_tokens: 0, input_tokens: 5, completion_tokens: 2, output_tokens: 0 } },
    5,
    2,
  ],
  ["reranking", { usage: { total_tokens: 5 } }, 5, 4],
  ["a choice", { choices: [{ usage: { prompt_tokens: 5, completion_tokens: 2 } }] }, 5, 2],
  ["x_groq", { x_groq: { usage: { prompt_tokens: 5, completion_tokens: 2 } } }, 5, 2],
  [
    "a choice beside x_groq",
    { x_groq: { usage: { prompt_tokens: 9 } }, choices: [{ usage: { prompt_tokens: 5, completion_tokens: 2 } }] },
    5,
    2,
  ],
  [
    "the top level beside x_groq and a choice",
    { usage: { prompt_tokens: 5 }, x_groq: { usage: { prompt_tokens: 9, completion_tokens: 9 } } },
    5,
    4,
  ],
];

const detailedReadings: [name: string, usage: object, cached: number | undefined, reasoning: number | undefined][] = [
  [
    "chat",
    {
      prompt_tokens: 9,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 2 },
    },
    4,
    2,
  ],
  [
    "responses",
    { input_tokens: 9, input_tokens_details: { cached_tokens: 4 }, output_tokens_details: { reasoning_tokens: 2 } },
    4,
    2,
  ],
  ["messages", { input_tokens: 9, cache_read_input_tokens: 7 }, 7, undefined],
  ["DeepSeek", { prompt_tokens: 9, prompt_cache_hit_tokens: 7, prompt_cache_miss_tokens: 2 }, 7, undefined],
  ["Moonshot", { prompt_tokens: 9, completion_tokens: 1, cached_tokens: 7 }, 7, undefined],
  [
    "nulls",
    { input_tokens: 9, prompt_tokens_details: null, completion_tokens_details: { reasoning_tokens: null } },
    undefined,
    undefined,
  ],
  [
    "impossible values",
    { input_tokens: 9, cache_read_input_tokens: -7, input_tokens_details: { cached_tokens: 1e10 } },
    undefined,
    undefined,
  ],
  ["other types", { input_tokens: 9, cache_read_input_tokens: "7", input_tokens_details: [4] }, undefined, undefined],
];

test.each(detailedReadings)(
  "cached input and reasoning are read from %s",
  (_, usage, cachedInputTokens, reasoningTokens) => {
    const expected = { cachedInputTokens, reasoningTokens };
    expect(readUsage({ usage }, noUsage)).toMatchObject(expected);
    expect(usageOfStream(readEventUsage({ response: { usage } }, noStreamUsage))).toMatchObject(expected);
    const parser = createUsageParser();
    for (const byte of Buffer.from(JSON.stringify({ usage }))) parser.push(Uint8Array.of(byte));
    expect(readUsage(parser.document(), noUsage)).toMatchObject(expected);
  },
);

test.each([
  ["usage without it", { usage: { prompt_tokens: 9 }, timings: { cache_n: 7, prompt_n: 2 } }, 7],
  ["usage that has it", { usage: { prompt_tokens: 9, cached_tokens: 6 }, timings: { cache_n: 7 } }, 6],
  ["usage of a response", { response: { usage: { input_tokens: 9 } }, timings: { cache_n: 7 } }, 7],
  ["no usage", { timings: { cache_n: 7 } }, undefined],
])("cached input is read from llama.cpp's timings beside %s", (_, document, cached) => {
  expect(readUsage(document, noUsage).cachedInputTokens).toBe(cached);
  expect(usageOfStream(readEventUsage(document, noStreamUsage)).cachedInputTokens).toBe(cached);
  const parser = createUsageParser();
  for (const byte of Buffer.from(JSON.stringify(document))) parser.push(Uint8Array.of(byte));
  expect(readUsage(parser.document(), noUsage).cachedInputTokens).toBe(cached);
});

const nothings: [name: string, value: unknown][] = [
  ["null", null],
  ["a number", 7],
  ["a string", '{"usage":{"prompt_tokens":5}}'],
  ["an array", [{ usage: { prompt_tokens: 5 } }]],
  ["usage that is null", { usage: null, message: null, response: null }],
  ["usage that is an array", { usage: [5, 2] }],
  ["counts that are null", { usage: { prompt_tokens: null, completion_tokens: null } }],
  ["counts that are zero", { usage: { prompt_tokens: 0, completion_tokens: -0 } }],
  ["counts that are negative", { usage: { prompt_tokens: -1, completion_tokens: -2 } }],
  ["counts that are fractions", { usage: { prompt_tokens: 1.5, completion_tokens: 0.1 } }],
  ["counts that are strings", { usage: { prompt_tokens: "5", completion_tokens: "2" } }],
  ["counts above 1,000,000,000", { usage: { prompt_tokens: 1_000_000_001, total_tokens: 2 ** 40 } }],
  ["counts beyond safe integers", { usage: { prompt_tokens: 2 ** 53, completion_tokens: Infinity } }],
  ["counts that are true", { usage: { prompt_tokens: true, completion_tokens: {} } }],
  ["the response of count_tokens", { input_tokens: 5 }],
  ["usage at other places", { choices: { usage: { prompt_tokens: 5 } }, data: [{ usage: { prompt_tokens: 5 } }] }],
  ["a total beside zeros", { usage: { prompt_tokens: 0, total_tokens: 5 } }],
  ["usage nested too deep", { message: { message: { usage: { input_tokens: 5 } } } }],
];

describe("usage", () => {
  test.each(readings)("is read from %s", (_, value, inputTokens, outputTokens) => {
    expect(readUsage(value, seen)).toEqual({ inputTokens, outputTokens });
  });

  test.each(nothings)("is not changed by %s", (_, value) => {
    expect(readUsage(value, seen)).toEqual(seen);
    expect(readUsage(value, noUsage)).toEqual({ inputTokens: 0, outputTokens: 0 });
  });

  test("accepts counts up to 1,000,000,000", () => {
    expect(readUsage({ usage: { prompt_tokens: 1_000_000_000 } }, seen).inputTokens).toBe(1_000_000_000);
  });
});

describe("usage in a stream", () => {
  const usageAfter = (...events: object[]): Usage => {
    return usageOfStream(events.reduce<StreamUsage>((usage, event) => readEventUsage(event, usage), noStreamUsage));
  };
  const opening = { message: { usage: { input_tokens: 20, output_tokens: 1 } } };

  test("of a refusal has no output", () => {
    expect(usageAfter(opening, { usage: { output_tokens: 0 } })).toEqual({ inputTokens: 20, outputTokens: 0 });
  });

  test("of an error that ends in zeros is the usage seen before", () => {
    const zeros = { usage: { input_tokens: 0, output_tokens: 0 } };
    expect(usageAfter(opening, zeros)).toEqual({ inputTokens: 20, outputTokens: 1 });
    expect(usageAfter(opening, { usage: { output_tokens: 9 } }, zeros)).toEqual({ inputTokens: 20, outputTokens: 9 });
  });

  test("is read from other places only if no event has it at the usual one", () => {
    const groq = { x_groq: { usage: { prompt_tokens: 8, completion_tokens: 8 } } };
    const chat = { usage: { prompt_tokens: 5, completion_tokens: 2 } };
    expect(usageAfter(groq, {})).toEqual({ inputTokens: 8, outputTokens: 8 });
    expect(usageAfter(groq, chat)).toEqual({ inputTokens: 5, outputTokens: 2 });
    expect(usageAfter(chat, groq)).toEqual({ inputTokens: 5, outputTokens: 2 });
  });

  test("keeps an output if zeros follow", () => {
    const events = [{ usage: { output_tokens: 9 } }, { usage: { output_tokens: 0 } }];
    expect(usageAfter(opening, ...events)).toEqual({ inputTokens: 20, outputTokens: 9 });
    const chat = { usage: { prompt_tokens: 5, completion_tokens: 2 } };
    expect(usageAfter(chat, { usage: { prompt_tokens: 0, completion_tokens: 0 } })).toEqual({
      inputTokens: 5,
      outputTokens: 2,
    });
  });
});
