import type { Tollgate } from "../support/tollgate.ts";
import { pollUntil } from "../support/poll-until.ts";

export interface Tokens {
  input: number;
  output: number;
}

export interface Call {
  path: string;
  body: Readonly<Record<string, unknown>>;
}

const messages = [{ role: "user", content: "Hi there" }];
/** The same text each time. */
const greedy = { temperature: 0, seed: 1 };

export const wholeCalls: Readonly<Record<string, Call>> = {
  chat: { path: "/v1/chat/completions", body: { messages, max_tokens: 9, ...greedy } },
  completions: { path: "/v1/completions", body: { prompt: "Hi there", max_tokens: 8, ...greedy } },
  messages: { path: "/v1/messages", body: { messages, max_tokens: 7, ...greedy } },
  responses: { path: "/v1/responses", body: { input: "Hi there", max_output_tokens: 6, ...greedy } },
};

export const streamed = ({ path, body }: Call): Call => ({ path, body: { ...body, stream: true } });

export const withUsage = ({ path, body }: Call): Call => ({
  path,
  body: { ...body, stream_options: { include_usage: true } },
});

/** Two of a function's arguments are possible, so that a grammar leads a model with random weights to one of them. */
export const weatherTool = {
  type: "function",
  function: {
    name: "weather",
    parameters: { type: "object", properties: { unit: { enum: ["c", "f"] } }, required: ["unit"] },
  },
};

export const post = (
  url: string,
  key: string,
  { path, body }: Call,
  signal: AbortSignal | null = null,
): Promise<Response> =>
  fetch(url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });

/** All JSON values of a whole response or of a stream. */
export function valuesIn(text: string): Record<string, unknown>[] {
  if (text.startsWith("{")) return [JSON.parse(text)];
  const data = [...text.matchAll(/^data: (\{.*)$/gm)];
  return data.map(([, json = ""]) => JSON.parse(json));
}

/** The usage that the backend reports to its client, in any dialect: the last value of each field. */
export function reportedIn(text: string): Tokens {
  const tokens = { input: 0, output: 0 };
  for (const value of valuesIn(text)) {
    for (const holder of [value, value["message"], value["response"]]) {
      const usage = (holder as Record<string, Record<string, number>> | undefined)?.["usage"] ?? {};
      tokens.input = usage["prompt_tokens"] ?? usage["input_tokens"] ?? tokens.input;
      tokens.output = usage["completion_tokens"] ?? usage["output_tokens"] ?? tokens.output;
    }
  }
  return tokens;
}

/** @returns what Tollgate counted for one request that `act` makes */
export async function countedFor(gate: Tollgate, act: () => Promise<unknown>): Promise<Tokens> {
  const before = await gate.readKey();
  await act();
  const after = await pollUntil(async () => {
    const now = await gate.readKey();
    return now.total_request_count > before.total_request_count && now;
  });
  if (after.total_request_count > before.total_request_count + 1) throw new Error("More than one request was counted");
  return {
    input: after.total_input_tokens - before.total_input_tokens,
    output: after.total_output_tokens - before.total_output_tokens,
  };
}
