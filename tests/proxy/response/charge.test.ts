import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import type { Usage } from "../../../src/domain/usage.ts";
import { createResponseCharge } from "../../../src/proxy/response/count.ts";
import { kindOf } from "../../../src/proxy/stream/body-kind.ts";
import { Passage } from "../../../src/proxy/stream/passage.ts";

const recording = (name: string): string =>
  readFileSync(join(import.meta.dir, "../../fixtures/choices", `${name}.sse`), "utf8");

const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
const done = "data: [DONE]\n\n";
const counts = (completion: number): object => ({
  prompt_tokens: 9,
  total_tokens: 9 + completion,
  completion_tokens: completion,
});

/** As vLLM and SGLang stream two choices of 2 and 3 tokens, one event for each token. */
function twoChoices(usageOf: (ofChoice: number) => object | null | undefined, last: object | undefined): string {
  const chunk = (index: number, content: string, ofChoice: number, finish: string | null = null): string => {
    const usage = usageOf(ofChoice);
    const choices = [{ index, delta: { content }, logprobs: null, finish_reason: finish }];
    return event({ id: "c", object: "chat.completion.chunk", choices, ...(usage !== undefined && { usage }) });
  };
  return [
    chunk(0, "", 0),
    chunk(1, "", 0),
    chunk(0, "a", 1),
    chunk(1, "b", 1),
    chunk(0, "c", 2, "stop"),
    chunk(1, "d", 2),
    chunk(1, "e", 3, "length"),
    last === undefined ? "" : event({ id: "c", object: "chat.completion.chunk", choices: [], usage: last }),
    done,
  ].join("");
}

interface Recorded {
  server: string;
  body: string;
  prompts?: number;
  /** The last values seen. */
  counted: [input: number, output: number];
  charged: [input: number, output: number];
  estimated?: number;
}

const recorded: Recorded[] = [
  { server: "llama.cpp, chat", body: recording("llama-cpp-chat"), counted: [30, 5], charged: [30, 10] },
  { server: "llama.cpp, completions", body: recording("llama-cpp-completions"), counted: [11, 5], charged: [11, 10] },
  {
    server: "llama.cpp, two prompts",
    body: recording("llama-cpp-two-prompts"),
    prompts: 2,
    counted: [4, 5],
    charged: [15, 10],
  },
  {
    server: "vLLM without usage",
    body: twoChoices(() => undefined, undefined),
    counted: [0, 0],
    charged: [7, 5],
    estimated: 12,
  },
  { server: "vLLM, usage at the end", body: twoChoices(() => undefined, counts(5)), counted: [9, 5], charged: [9, 5] },
  { server: "vLLM, usage in every chunk", body: twoChoices(counts, counts(5)), counted: [9, 5], charged: [9, 5] },
  {
    server: "SGLang, null before the usage",
    body: twoChoices(() => null, counts(5)),
    counted: [9, 5],
    charged: [9, 5],
  },
  {
    server: "vLLM, usage in every chunk, cut before the total",
    body: twoChoices(counts, undefined).replace(done, ""),
    counted: [9, 3],
    charged: [9, 5],
  },
];

test.each(recorded)("two choices of $server", async ({ body, prompts = 1, counted, charged, estimated = 0 }) => {
  const bytes = Buffer.from(body);
  for (const size of [1, 7, 100, bytes.length]) {
    const response = new Response(null, { headers: { "content-type": "text/event-stream" } });
    const reservation = { inputTokens: 7, tokens: 1000, texts: 2, prompts };
    const charge = createResponseCharge({ reservation, method: "POST", path: "/v1/chat/completions", response });
    const passage = new Passage(kindOf("text/event-stream", null), { listener: { observer: charge?.output } });
    for (let at = 0; at < bytes.length; at += size) passage.push(bytes.subarray(at, at + size));
    const usage: Usage = await passage.end();
    const owed = charge?.owed(usage, body.includes("[DONE]"));
    const total = usage.inputTokens + usage.outputTokens + (owed?.besideTokens ?? 0);
    expect([usage.inputTokens, usage.outputTokens]).toEqual(counted);
    expect({ total, estimated: owed?.estimatedTokens }).toEqual({ total: charged[0] + charged[1], estimated });
  }
});
