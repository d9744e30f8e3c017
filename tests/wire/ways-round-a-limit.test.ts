import { describe, expect, spyOn, test } from "bun:test";
import type { RequestBody } from "../../src/admin/requests/contract.ts";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";
import type { Wire } from "../support/simulator/wire.ts";
import { startTollgateWithKeys, type TollgateWithKeys } from "../support/tollgate-with-keys.ts";

/** What the backend sends. A stream is given by its events, of which `"breaks"` cuts the connection. */
type Answer = "nothing" | "head" | { events: readonly string[] } | { json: object; status?: number };

interface Sent {
  path: string;
  /** As text where a member comes more than once. */
  body: object | string;
  answers: readonly Answer[];
  /** The client leaves, or the stream breaks, once it has seen so many events; undefined: it has its end. */
  sees?: number;
}

interface Result {
  status: number;
  text: string;
  charged: number;
  estimated: number;
  counted: object;
  /** What the backend got, one after the other. */
  bodies: unknown[];
  row: RequestBody;
}

const textOf = (body: object | string): string => (typeof body === "string" ? body : JSON.stringify(body));

const start = () => startTollgateWithKeys({ PROXY_HAN_GUARD: "off" });
const gate = shared(start);

function respond(wire: Wire, answer: Exclude<Answer, "nothing">, isWhole: boolean): void {
  if (typeof answer === "object" && "events" in answer) {
    wire.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
    wire.write(answer.events.filter((one) => one !== "breaks").join(""));
    if (isWhole) wire.end();
    return;
  }
  const { json, status = 200 } = answer === "head" ? { json: { a: "b" } } : answer;
  const text = JSON.stringify(json);
  const head = `HTTP/1.1 ${status} X\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n`;
  wire.write(answer === "head" ? head : head + text);
}

/** What sends with a new key that has these fields. */
function startKey(fields: object, of: TollgateWithKeys = gate) {
  const { admin, backend } = of;
  const made = of.createKey(fields);
  return async ({ path, body, answers, sees }: Sent): Promise<Result> => {
    const { id, key } = await made;
    const before = await of.getKey(id);
    const [requestId, left, bodies] = [crypto.randomUUID(), [...answers], [] as unknown[]];
    const last = Promise.withResolvers<Wire>();
    backend.handle((request, wire) => {
      bodies.push(request.json());
      const answer = left.shift();
      if (answer === undefined) throw new Error("sent too often");
      if (answer !== "nothing") respond(wire, answer, sees === undefined);
      if (left.length === 0) last.resolve(wire);
    });
    const client = await of.sendRaw(path, body, { key, headers: { "x-request-id": requestId } });
    const wire = await last.promise;
    for (let seen = 0; seen < (sees ?? 0); seen++) await client.nextEvent();
    const [answer = "nothing"] = answers.slice(-1);
    if (answer === "head") {
      await pollUntil(async () => (await admin.listRunning()).some(({ state }) => state === "running"));
    }
    if (typeof answer === "object" && "events" in answer && answer.events.at(-1) === "breaks") wire.reset();
    else if (typeof answer === "string" || sees !== undefined) client.reset();
    const text = typeof answer === "string" ? "" : await client.text();
    const row = await pollUntil(async () => (await admin.listRequests(`?request_id=${requestId}`))[0]);
    const after = await pollUntil(async () => {
      const now = await of.getKey(id);
      return (now.limit_states["tokens_per_day"] as { reserved: number } | undefined)?.reserved ? undefined : now;
    });
    const added = (field: keyof typeof after): number => Number(after[field]) - Number(before[field]);
    return {
      status: typeof answer === "string" ? 0 : (await client.head()).status,
      text,
      charged: (after.used["tokens_per_day"] ?? 0) - (before.used["tokens_per_day"] ?? 0),
      estimated: added("total_estimated_tokens"),
      counted: { inputTokens: added("total_input_tokens"), outputTokens: added("total_output_tokens") },
      bodies,
      row,
    };
  };
}

const tokenRules = { tokens_per_day: 1_000_000_000 };

const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
const named = (data: { type: string; [member: string]: unknown }): string => `event: ${data.type}\n${event(data)}`;
const chunk = (delta: object, more: { index?: number; end?: boolean; usage?: object } = {}): string => {
  const { index = 0, end = false, usage } = more;
  return event({ id: "c", choices: [{ index, delta, finish_reason: end ? "stop" : null }], ...(usage && { usage }) });
};
const alone = (usage: object): string => event({ id: "c", choices: [], usage });
const tokens = (prompt: number, completion: number) => ({ prompt_tokens: prompt, completion_tokens: completion });
const done = "data: [DONE]\n\n";
const times = (count: number, text: string): string[] => Array.from({ length: count }, () => text);

const chat = { model: "m", max_tokens: 100, messages: [{ role: "user", content: "Hi there" }] };
const stream = { ...chat, stream: true };
const inputOf = (body: object | string): number => Math.floor(textOf(body).length / 3);

const word = chunk({ content: "word" });
const longChunk = (length: number): string => chunk({ content: "x".repeat(length) });
const opening = named({ type: "message_start", message: { usage: { input_tokens: 1, output_tokens: 1 } } });

interface Way extends Sent {
  way: string;
  charged: number;
  estimated: number;
}

const chatPath = "/v1/chat/completions";
const text = { model: "m", prompt: "Hi", max_tokens: 100, stream: true };
const textChunk = event({ choices: [{ index: 0, text: " word", finish_reason: null }] });
const responses = { model: "m", input: "Hi", stream: true };
const batchPath = "/v1/chat/completions/batch";
const batch = { ...chat, messages: [chat.messages, chat.messages, chat.messages] };
const requestsPath = "/v1/messages/batches";
const requests = { requests: [1, 2, 3].map((id) => ({ custom_id: `${id}`, params: chat })) };

const speech = (kind: string) => ({ type: `transcript.text.${kind}`, ...(kind === "delta" && { delta: "word" }) });
const wholeText = { text: "word".repeat(100) };
const threadText = [{ index: 0, type: "text", text: { value: "word" } }];
const threadDelta = { object: "thread.message.delta", delta: { content: threadText } };
const responseDelta = { type: "response.output_text.delta", delta: "word" };

/** Streams of other paths: their events, and the tokens of their output. */
const otherStreams: [path: string, output: number, events: string[]][] = [
  ["/v1/openai/v1/chat/completions", 9, [...times(9, word), done]],
  ["/v1/engines/m/completions", 12, [...times(9, textChunk), done]],
  ["/v1/audio/transcriptions", 9, [...times(9, named(speech("delta"))), named({ ...speech("done"), ...wholeText })]],
  ["/v1/threads/runs", 9, [...times(9, event(threadDelta)), event({ object: "thread.message", content: threadText })]],
  [
    "/v1/openai/v1/responses",
    9,
    [...times(9, event(responseDelta)), event({ type: "response.output_text.done", ...wholeText })],
  ],
  ["/v1/generate_stream", 9, times(9, event({ token: { id: 1, text: "word" }, generated_text: null }))],
  ["/v1/completion", 100, [event({ content: "x".repeat(400), stop: false })]],
  ["/v1/generate", 9, times(9, event({ output: { text: "word" } }))],
  ["/v1/images/generations", 0, [event({ type: "image_generation.partial_image", b64_json: "a".repeat(200_000) })]],
  ["/v1/pull", 0, times(9, event({ status: "pulling", text: "", progress: { percent: 3 } }))],
];

/** Streams that their client leaves after these events, and what they cost beside their estimated input. */
const leftStreams: [way: string, path: string, body: object, output: number, events: string[]][] = [
  ["of another path costs what had come", "/v1/audio/transcriptions", stream, 3, times(3, named(speech("delta")))],
  ["costs its estimated input and an output token for each event", chatPath, stream, 20, times(20, word)],
  ["with few long events costs a token for every four characters", chatPath, stream, 300, times(3, longChunk(400))],
  [
    "with reasoning, tool calls and refusals pays for these too, once each",
    chatPath,
    stream,
    30,
    [
      chunk({ role: "assistant", content: "" }),
      chunk({ reasoning: "a".repeat(40), reasoning_content: "a".repeat(40) }),
      chunk({ tool_calls: [{ index: 0, id: "call", function: { name: "abcd", arguments: "b".repeat(36) } }] }),
      chunk({ refusal: "c".repeat(40) }),
    ],
  ],
  ["may have a slash at the end of its path", `${chatPath}/`, stream, 3, times(3, word)],
  ["may have a fragment in its path, which the backend does not get", `${chatPath}#`, stream, 3, times(3, word)],
  ["may have a line feed at the end of its path, which vLLM ignores", `${chatPath}%0A`, stream, 3, times(3, word)],
  ["of legacy completions", "/v1/completions", text, 7, times(5, textChunk)],
  [
    "of messages pays for thinking and the input of tools",
    "/v1/messages",
    stream,
    40,
    [
      named({ type: "content_block_delta", delta: { type: "thinking_delta", thinking: "x".repeat(80) } }),
      named({ type: "content_block_delta", delta: { type: "input_json_delta", partial_json: "x".repeat(80) } }),
      named({ type: "content_block_stop" }),
      named({ type: "ping" }),
    ],
  ],
  [
    "of responses",
    "/v1/responses",
    responses,
    4,
    [
      named({ type: "response.created", response: { id: "resp_1", usage: null } }),
      ...times(4, named({ type: "response.output_text.delta", delta: "word" })),
      named({ type: "response.output_text.done", text: "wordwordwordword".repeat(9) }),
      named({ type: "response.in_progress" }),
    ],
  ],
];

const ways: Way[] = [
  ...otherStreams.map(([path, output, events]) => ({
    way: `a stream of ${path} without usage costs its estimated input and its output, if it has any`,
    path,
    body: stream,
    answers: [{ events }],
    charged: output === 0 ? 0 : inputOf(stream) + output,
    estimated: output === 0 ? 0 : inputOf(stream) + output,
  })),
  {
    way: "a stream of another path that reports its usage costs that",
    path: "/v1/openai/v1/chat/completions",
    body: stream,
    answers: [{ events: [...times(9, word), alone(tokens(5, 7)), done] }],
    charged: 12,
    estimated: 0,
  },
  ...leftStreams.map(([way, path, body, output, events]) => ({
    way: `a stream that its client leaves ${way}`,
    path,
    body,
    answers: [{ events }],
    sees: events.length,
    charged: inputOf(body) + output,
    estimated: inputOf(body) + output,
  })),
  {
    way: "a message stream that its client leaves costs more than the input and the placeholder that it opens with",
    path: "/v1/messages",
    body: stream,
    answers: [
      {
        events: [
          opening,
          ...times(5, named({ type: "content_block_delta", delta: { type: "text_delta", text: "word" } })),
        ],
      },
    ],
    sees: 6,
    charged: 1 + 5,
    estimated: 4,
  },
  {
    way: "a client that leaves before the head costs its estimated input",
    path: chatPath,
    body: stream,
    answers: ["nothing"],
    charged: inputOf(stream),
    estimated: inputOf(stream),
  },
  {
    way: "a whole answer without usage costs what was reserved",
    path: chatPath,
    body: chat,
    answers: [{ json: { choices: [{ index: 0, message: { content: "Hi" } }] } }],
    charged: inputOf(chat) + 100,
    estimated: inputOf(chat) + 100,
  },
  {
    way: "a client that leaves between the head and the body of a whole answer costs what was reserved",
    path: chatPath,
    body: chat,
    answers: ["head"],
    charged: inputOf(chat) + 100,
    estimated: inputOf(chat) + 100,
  },
  {
    way: "several conversations in one request of vLLM's cost what each of them reserved",
    path: batchPath,
    body: batch,
    answers: ["head"],
    charged: inputOf(batch) + 300,
    estimated: inputOf(batch) + 300,
  },
  {
    way: "several conversations whose client leaves before the head cost their estimated input",
    path: batchPath,
    body: batch,
    answers: ["nothing"],
    charged: inputOf(batch),
    estimated: inputOf(batch),
  },
  {
    way: "a batch of messages, which is answered later, costs what each of its requests reserved",
    path: requestsPath,
    body: requests,
    answers: [{ json: { id: "msgbatch_1", type: "message_batch", processing_status: "in_progress" } }],
    charged: inputOf(requests) + 300,
    estimated: inputOf(requests) + 300,
  },
  {
    way: "a whole stream of a backend that reports nothing",
    path: chatPath,
    body: stream,
    answers: [{ events: [...times(12, word), chunk({}, { end: true }), done] }],
    charged: inputOf(stream) + 12,
    estimated: inputOf(stream) + 12,
  },
  {
    way: "a stream that breaks after a while counts nowhere, and costs what came",
    path: chatPath,
    body: stream,
    answers: [{ events: [...times(8, word), "breaks"] }],
    sees: 8,
    charged: inputOf(stream) + 8,
    estimated: inputOf(stream) + 8,
  },
  {
    way: "a refusal of the backend costs nothing",
    path: chatPath,
    body: chat,
    answers: [{ json: { error: { message: "no" } }, status: 400 }],
    charged: 0,
    estimated: 0,
  },
  {
    way: "what the backend reports of a stream that is left is no estimate",
    path: chatPath,
    body: stream,
    answers: [{ events: times(3, chunk({ content: "x".repeat(100) }, { usage: tokens(9, 3) })) }],
    sees: 3,
    charged: 12,
    estimated: 0,
  },
  {
    way: "one choice of eight ends early and is reported, and the client leaves the others",
    path: chatPath,
    body: { ...stream, n: 8 },
    answers: [
      {
        events: [
          chunk({ content: "a" }),
          chunk({}, { end: true }),
          alone(tokens(9, 1)),
          ...times(38, chunk({ content: "b" }, { index: 1 })),
        ],
      },
    ],
    sees: 40,
    charged: 9 + 39,
    estimated: 38,
  },
  {
    way: "input from a cache, and into one, costs what other input does",
    path: "/v1/messages",
    body: chat,
    answers: [
      {
        json: {
          usage: { input_tokens: 1, cache_read_input_tokens: 44, cache_creation_input_tokens: 100, output_tokens: 5 },
        },
      },
    ],
    charged: 150,
    estimated: 0,
  },
  {
    way: "the same in a stream",
    path: "/v1/messages",
    body: stream,
    answers: [
      {
        events: [
          named({
            type: "message_start",
            message: { usage: { input_tokens: 1, cache_read_input_tokens: 44, output_tokens: 1 } },
          }),
          named({
            type: "message_delta",
            delta: {},
            usage: { output_tokens: 5, cache_creation_input_tokens: 7 },
          }),
          named({ type: "message_stop" }),
        ],
      },
    ],
    charged: 57,
    estimated: 0,
  },
  {
    way: "in the other dialects, cached input is part of the input",
    path: chatPath,
    body: chat,
    answers: [{ json: { choices: [], usage: { ...tokens(45, 5), prompt_tokens_details: { cached_tokens: 44 } } } }],
    charged: 50,
    estimated: 0,
  },
];

describe("a key with limits of tokens", () => {
  test.each(ways)("$way", async ({ charged, estimated, ...sent }) => {
    const result = await startKey(tokenRules)(sent);
    expect({ charged: result.charged, estimated: result.estimated }).toEqual({ charged, estimated });
    expect(result.row.estimated_tokens ?? 0).toBe(estimated);
  });

  test("estimates stand in no count", async () => {
    const sent = { path: chatPath, body: stream, answers: [{ events: times(3, word) }], sees: 3 };
    const { counted, row } = await startKey(tokenRules)(sent);
    expect(counted).toEqual({ inputTokens: 0, outputTokens: 0 });
    expect(row).toMatchObject({ input_tokens: 0, output_tokens: 0, uncounted: false });
  });
});

describe("what is reserved", () => {
  const base = { model: "m", max_tokens: 100 };
  test.each<[string, string, object | string, number]>([
    ["n", chatPath, { ...base, n: 4 }, 400],
    ["n as text", chatPath, { ...base, n: "4" }, 400],
    ["best_of, of which n are returned", "/v1/completions", { ...base, prompt: "Hi", n: 2, best_of: 5 }, 500],
    ["several prompts", "/v1/completions", { ...base, prompt: ["Hi", "You"], n: 2 }, 400],
    ["prompts of tokens", "/v1/completions", { ...base, prompt: [[1, 2], [3]] }, 200],
    ["one prompt of tokens", "/v1/completions", { ...base, prompt: [1, 2, 3] }, 100],
    ["no limit of tokens, for each text", chatPath, { model: "m", n: 3 }, 3072],
    ["one under a newer name", chatPath, { model: "m", max_completion_tokens: 300 }, 300],
    ["the larger of both names", chatPath, { ...base, max_completion_tokens: 300 }, 300],
    ["the other of two, of which one is null", chatPath, { ...base, max_completion_tokens: null }, 100],
    ["several prompts that are embedded", "/v1/completions", { ...base, prompt_embeds: ["AA==", "AA=="] }, 200],
    ["several conversations", batchPath, { ...batch, n: 2 }, 600],
    ["the limits of all requests of a batch", requestsPath, requests, 300],
    [
      "no limit, for each request of a batch",
      requestsPath,
      { max_tokens: 1, requests: [requests.requests[0], { custom_id: "x" }, { params: { max_tokens: null } }, 5] },
      100 + 3 * 1024,
    ],
    ["one of the Responses API", "/v1/responses", { model: "m", input: "Hi", max_output_tokens: 300 }, 300],
    ["an impossible n", chatPath, { ...base, n: 1e300 }, 1e9],
  ])("grows with %s", async (_, path, body, output) => {
    const { id, key } = await gate.createKey(tokenRules);
    gate.backend.clear();
    gate.backend.handle(() => {});
    const client = await gate.sendRaw(path, body, { key });
    await gate.backend.nextRequest();
    const { tokens_per_day: state } = (await gate.getKey(id)).limit_states;
    expect(state).toMatchObject({ reserved: output === 1e9 ? 1e9 : inputOf(body) + output });
    client.reset();
  });
});

describe("a key without limits of tokens", () => {
  test.each([{}, { requests_per_minute: 999 }])("is charged nothing beside its counts: %j", async (fields) => {
    const send = startKey(fields);
    for (const { charged: _, estimated: __, way: ___, ...sent } of ways) {
      const { estimated, row } = await send(sent);
      expect([estimated, row.estimated_tokens ?? 0]).toEqual([0, 0]);
    }
  });

  test("has no event parsed for a charge, and a limited key only those that are like none before", async () => {
    const parse = spyOn(JSON, "parse");
    const parsedBy = async (fields: object): Promise<number> => {
      parse.mockClear();
      await startKey(fields)({ path: chatPath, body: stream, answers: [{ events: [...times(9, word), done] }] });
      return parse.mock.calls.filter(([json]) => json.includes('"content":"word"')).length;
    };
    expect([await parsedBy({}), await parsedBy(tokenRules)]).toEqual([0, 1]);
    parse.mockRestore();
  });

  test.each<[string, Sent, boolean]>([
    ["cut before its usage", { path: chatPath, body: stream, answers: [{ events: times(3, word) }], sees: 3 }, true],
    [
      "cut after the placeholder of a message",
      { path: "/v1/messages", body: stream, answers: [{ events: [opening, ...times(2, ": \n\n")] }], sees: 3 },
      true,
    ],
    ["whole without usage", { path: chatPath, body: stream, answers: [{ events: [word, done] }] }, false],
    [
      "cut with usage",
      {
        path: chatPath,
        body: stream,
        answers: [{ events: times(3, chunk({}, { usage: tokens(1, 2) })) }],
        sees: 3,
      },
      false,
    ],
  ])("has a stream that was %s marked as not counted, or not", async (_, sent, uncounted) => {
    expect((await startKey({})(sent)).row).toMatchObject({ uncounted });
  });
});

describe("a backend that refuses stream_options", () => {
  const refusal = (message: string): Answer => ({ json: { error: { message } }, status: 400 });
  const unknown = refusal("Unknown parameter: stream_options");
  const plain: Answer = { events: [...times(3, word), done] };

  test("gets the request again without them, and then no more", async () => {
    await using fresh = await start();
    const send = startKey(tokenRules, fresh);
    const first = await send({ path: chatPath, body: stream, answers: [unknown, plain] });
    expect(first.bodies).toEqual([{ ...stream, stream_options: { include_usage: true } }, stream]);
    expect(first).toMatchObject({ status: 200, charged: inputOf(stream) + 3 });
    expect(first.row).toMatchObject({ status: 200, sends: 2, changes: [] });
    const next = await send({ path: chatPath, body: stream, answers: [plain] });
    expect(next.bodies).toEqual([stream]);
    expect(next.row.sends).toBeNull();
    // Another path may be another program.
    const other = await send({ path: "/v1/completions", body: text, answers: [plain] });
    expect(other.bodies).toEqual([{ ...text, stream_options: { include_usage: true } }]);
  });

  test("is not believed if it refuses the request without them too", async () => {
    await using fresh = await start();
    const send = startKey(tokenRules, fresh);
    const quoting = refusal('no such model, in {"stream_options":{"include_usage":true}}');
    const first = await send({ path: chatPath, body: stream, answers: [quoting, refusal("no such model")] });
    expect(first).toMatchObject({ status: 400, text: expect.stringContaining("no such model"), charged: 0 });
    const next = await send({ path: chatPath, body: stream, answers: [plain] });
    expect(next.bodies).toEqual([{ ...stream, stream_options: { include_usage: true } }]);
  });

  test.each<[string, Sent]>([
    ["another error", { path: chatPath, body: stream, answers: [refusal("too long")] }],
    ["an error of the client's own options", { path: "/v1/messages", body: stream, answers: [unknown] }],
    ["a request that asked for no stream", { path: chatPath, body: chat, answers: [unknown] }],
  ])("%s is passed on", async (_, sent) => {
    await using fresh = await start();
    const result = await startKey(tokenRules, fresh)(sent);
    expect(result.bodies).toHaveLength(1);
    const [answer] = sent.answers;
    expect(result).toMatchObject({ status: 400, text: JSON.stringify((answer as { json: object }).json), charged: 0 });
  });
});

describe("a backend that sends usage unasked", () => {
  const whole: Answer = { events: [word, chunk({}, { end: true }), alone(tokens(9, 1)), done] };
  const silent: Answer = { events: [word, chunk({}, { end: true }), done] };

  test("is known too if it sends an empty choice beside the usage, and not by usage that is zero or beside text", async () => {
    await using fresh = await start();
    const [limited, unlimited] = [startKey(tokenRules, fresh), startKey({}, fresh)];
    const beside = (usage: object, content = ""): Answer => ({
      events: [word, chunk({}, { end: true }), chunk({ role: "assistant", content }, { usage }), done],
    });
    for (const answer of [
      beside(tokens(0, 0)),
      beside(tokens(9, 1), "word"),
      beside(tokens(9, 1), "x".repeat(99_999)),
    ]) {
      await unlimited({ path: chatPath, body: stream, answers: [answer] });
      expect((await limited({ path: chatPath, body: stream, answers: [whole] })).text).not.toContain("usage");
    }
    await unlimited({ path: chatPath, body: stream, answers: [beside(tokens(9, 1))] });
    expect((await limited({ path: chatPath, body: stream, answers: [whole] })).text).toContain("usage");
  });

  test("is known by the streams of other keys, and keys with limits of tokens then get it too", async () => {
    await using fresh = await start();
    const [limited, unlimited] = [startKey(tokenRules, fresh), startKey({}, fresh)];
    const sent = { path: chatPath, body: stream, answers: [whole] };
    expect((await limited(sent)).text).not.toContain("usage");
    const asked = { ...stream, stream_options: { include_usage: true } };
    await unlimited({ ...sent, body: asked });
    expect((await limited(sent)).text).not.toContain("usage");
    const { text: unforced } = await unlimited(sent);
    expect((await limited(sent)).text).toBe(unforced);
    // It was replaced by another one.
    await unlimited({ ...sent, answers: [silent] });
    expect((await limited(sent)).text).not.toContain("usage");
  });
});
