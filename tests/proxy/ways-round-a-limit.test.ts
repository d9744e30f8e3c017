import { describe, expect, spyOn, test } from "bun:test";
import type { Admission } from "../../src/domain/admissions.ts";
import type { KeyRules } from "../../src/domain/keys.ts";
import type { RequestRecord } from "../../src/domain/requests.ts";
import { chargedTokens, type CountedUsage } from "../../src/domain/usage.ts";
import type { UsageEvent } from "../../src/domain/usage-event.ts";
import { createLog } from "../../src/log/log.ts";
import { createHeldBytes } from "../../src/proxy/request/held-bytes.ts";
import { createProxy } from "../../src/proxy/gateway.ts";
import { clientLeft, failed } from "../../src/proxy/upstream/abort-reason.ts";
import { noRules } from "../../src/store/keys/rules.ts";
import { forwardsTo } from "../support/forwards.ts";
import { startQueue } from "../support/local-places.ts";
import { noEngines, rewriteRules, rewritingOf } from "../support/rewrite-rules.ts";

const noTimeout = { beginWait: () => {}, endWait: () => {}, clear: () => {} };

/** What the backend sends. A stream is given by its events, of which `"breaks"` cuts the connection. */
type Answer =
  | "client leaves after the head"
  | { events: readonly string[] }
  | { json: object; status?: number }
  | "client leaves before the head";

interface Sent {
  path: string;
  /** As text where a member comes more than once. */
  body: object | string;
  answers: readonly Answer[];
  /** The client takes so many chunks and leaves; undefined: it stays. */
  leavesAfter?: number;
}

interface Result {
  status: number;
  text: string;
  reserved: number;
  charged: number;
  estimated: number;
  counted: CountedUsage;
  /** What the backend got, one after the other. */
  bodies: Record<string, unknown>[];
  record: RequestRecord | undefined;
}

const textOf = (body: object | string): string => (typeof body === "string" ? body : JSON.stringify(body));

/** One backend; the rules are those of the key that sends. */
function startProxy() {
  let rules: KeyRules | null = null;
  const events: UsageEvent[] = [];
  const records: RequestRecord[] = [];
  const bodies: Record<string, unknown>[] = [];
  let answers: Answer[] = [];
  let reserved = 0;
  let leave = (): void => {};
  const admission: Admission = {
    refusedBy: undefined,
    waitMs: 0,
    used: () => 0,
    handOver: () => ({ keyId: 1, instance: "a" }),
    end: () => {},
    cancel: () => {},
  };
  const proxy = createProxy({
    backendModels: { findEntry: () => undefined, requestEnded: () => {} },
    rewriting: rewritingOf(rewriteRules({ vendorPrefixes: [] })),
    config: {
      upstream: { streamReadTimeoutMs: 1000, nonStreamReadTimeoutMs: 1000 },
      corsOrigins: undefined,
      closedPaths: [],
      contact: undefined,
      maxBodyBytes: 10_000_000,
      sharesOrigin: true,
    },
    forwards: forwardsTo(async ({ body, client }) => {
      bodies.push((await new Response(body).json()) as Record<string, unknown>);
      const answer = answers.shift();
      if (answer === undefined) throw new Error("sent too often");
      if (answer === "client leaves before the head") throw clientLeft();
      const aborter = new AbortController();
      client.addEventListener("abort", () => aborter.abort(clientLeft()));
      if (answer === "client leaves after the head") setImmediate(() => leave());
      return {
        response: answer === "client leaves after the head" ? unfinished(aborter.signal) : responseOf(answer),
        readTimeout: noTimeout,
        signal: aborter.signal,
        abort: (reason) => aborter.abort(reason),
        onBodyRead: () => {},
        release: () => {},
      };
    }),
    engines: noEngines,
    findKey: () => ({ id: 1, rules }),
    readUsed: async () => () => 0,
    async record(event) {
      events.push(event);
      return event;
    },
    queue: startQueue({
      admit(_, __, tokens) {
        reserved = tokens;
        return admission;
      },
    }),
    findOwners: async (ids) => ids.map(() => undefined),
    countOwned: async () => 0,
    findOwnKey: async () => undefined,
    addInFlight: () => () => {},
    cacheReporters: new Set(),
    observer: { finished: (record) => void records.push(record) },
    peerAddress: () => undefined,
    clientAddress: () => "192.0.2.7",
    heldBytes: createHeldBytes(10_000_000, 10_000_000, () => performance.now()),
    disableIdleTimeout: () => () => {},
    closeSoon: () => {},
    draining: new AbortController().signal,
    sseKeepaliveMs: 0,
    wall: () => 1_700_000_000_999,
    monotonic: () => performance.now(),
    log: createLog({ level: "error", format: "json", clock: Date.now, write: () => {} }),
  });

  return (ofKey: KeyRules | null) =>
    async ({ path, body, answers: given, leavesAfter }: Sent): Promise<Result> => {
      rules = ofKey;
      for (const list of [events, records, bodies]) list.length = 0;
      answers = [...given];
      reserved = 0;
      const headers = { host: "gate.example", "x-api-key": "k", "content-type": "application/json" };
      const client = new AbortController();
      leave = () => client.abort();
      const init = { method: "POST", headers, body: textOf(body), signal: client.signal };
      const response = await proxy.handle(new Request(`http://gate.example${path}`, init));
      const text = await take(response, client, leavesAfter);
      while (records.length === 0) await Bun.sleep(0);
      const sum = (field: keyof CountedUsage): number =>
        events.reduce((total, event) => total + (event[field] ?? 0), 0);
      return {
        status: response.status,
        text,
        reserved,
        charged: events.reduce((total, event) => total + chargedTokens(event), 0),
        estimated: sum("estimatedTokens"),
        counted: { inputTokens: sum("inputTokens"), outputTokens: sum("outputTokens") },
        bodies: [...bodies],
        record: records[0],
      };
    };
}

/** A short body that is broken off with the request. */
function unfinished(signal: AbortSignal): Response {
  const body = new ReadableStream({
    start: (controller) => signal.addEventListener("abort", () => controller.error(signal.reason)),
  });
  return new Response(body, { headers: { "content-type": "application/json", "content-length": "90" } });
}

function responseOf(answer: Exclude<Answer, string>): Response {
  if (!("events" in answer)) return Response.json(answer.json, { status: answer.status ?? 200 });
  const left = [...answer.events];
  const encoder = new TextEncoder();
  const body = new ReadableStream({
    pull(controller) {
      const next = left.shift();
      if (next === "breaks") controller.error(failed("ECONNRESET"));
      else if (next !== undefined) controller.enqueue(encoder.encode(next));
      else controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

async function take(response: Response, client: AbortController, chunks = Infinity): Promise<string> {
  if (response.body === null) return "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (let taken = 0; taken < chunks; taken++) {
      const { done, value } = await reader.read();
      if (done) return text;
      text += decoder.decode(value);
    }
    client.abort();
    await reader.cancel();
  } catch {
    // It was broken off.
  }
  return text;
}

const tokenRules: KeyRules = { ...noRules, tokens_per_day: 1_000_000 };
const limited = startProxy()(tokenRules);
const unlimited = startProxy()(null);

const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
const named = (data: { type: string }): string => `event: ${data.type}\n${event(data)}`;
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
const opening = named({ type: "message_start", message: { usage: { input_tokens: 1, output_tokens: 1 } } } as never);

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
  {
    way: "a stream of another path that its client leaves costs what had come",
    path: "/v1/audio/transcriptions",
    body: stream,
    answers: [{ events: times(9, named(speech("delta"))) }],
    leavesAfter: 3,
    charged: inputOf(stream) + 3,
    estimated: inputOf(stream) + 3,
  },
  {
    way: "a chat stream that its client leaves costs its estimated input and an output token for each event",
    path: chatPath,
    body: stream,
    answers: [{ events: [...times(30, word), done] }],
    leavesAfter: 20,
    charged: inputOf(stream) + 20,
    estimated: inputOf(stream) + 20,
  },
  {
    way: "few long events cost a token for every four characters",
    path: chatPath,
    body: stream,
    answers: [{ events: times(9, chunk({ content: "x".repeat(400) })) }],
    leavesAfter: 3,
    charged: inputOf(stream) + 300,
    estimated: inputOf(stream) + 300,
  },
  {
    way: "reasoning, tool calls and refusals are output too, once each",
    path: chatPath,
    body: stream,
    answers: [
      {
        events: [
          chunk({ role: "assistant", content: "" }),
          chunk({ reasoning: "a".repeat(40), reasoning_content: "a".repeat(40) }),
          chunk({ tool_calls: [{ index: 0, id: "call", function: { name: "abcd", arguments: "b".repeat(36) } }] }),
          chunk({ refusal: "c".repeat(40) }),
          ...times(9, word),
        ],
      },
    ],
    leavesAfter: 4,
    charged: inputOf(stream) + 30,
    estimated: inputOf(stream) + 30,
  },
  {
    way: "the path may be written with a slash at its end",
    path: `${chatPath}/`,
    body: stream,
    answers: [{ events: times(9, word) }],
    leavesAfter: 3,
    charged: inputOf(stream) + 3,
    estimated: inputOf(stream) + 3,
  },
  {
    way: "the path may be written with a fragment, which the backend does not get",
    path: `${chatPath}#`,
    body: stream,
    answers: [{ events: times(9, word) }],
    leavesAfter: 3,
    charged: inputOf(stream) + 3,
    estimated: inputOf(stream) + 3,
  },
  {
    way: "the path may be written with a line feed at its end, which vLLM ignores",
    path: `${chatPath}%0A`,
    body: stream,
    answers: [{ events: times(9, word) }],
    leavesAfter: 3,
    charged: inputOf(stream) + 3,
    estimated: inputOf(stream) + 3,
  },
  {
    way: "a stream of legacy completions that its client leaves",
    path: "/v1/completions",
    body: text,
    answers: [{ events: times(9, textChunk) }],
    leavesAfter: 5,
    charged: inputOf(text) + 7,
    estimated: inputOf(text) + 7,
  },
  {
    way: "a message stream that its client leaves costs more than the input and the placeholder that it opens with",
    path: "/v1/messages",
    body: stream,
    answers: [
      {
        events: [
          opening,
          ...times(9, named({ type: "content_block_delta", delta: { type: "text_delta", text: "word" } } as never)),
        ],
      },
    ],
    leavesAfter: 6,
    charged: 1 + 5,
    estimated: 4,
  },
  {
    way: "thinking and the input of tools in a message stream",
    path: "/v1/messages",
    body: stream,
    answers: [
      {
        events: [
          named({ type: "content_block_delta", delta: { type: "thinking_delta", thinking: "x".repeat(80) } } as never),
          named({
            type: "content_block_delta",
            delta: { type: "input_json_delta", partial_json: "x".repeat(80) },
          } as never),
          named({ type: "content_block_stop" }),
          named({ type: "ping" }),
        ],
      },
    ],
    leavesAfter: 3,
    charged: inputOf(stream) + 40,
    estimated: inputOf(stream) + 40,
  },
  {
    way: "a stream of responses that its client leaves",
    path: "/v1/responses",
    body: responses,
    answers: [
      {
        events: [
          named({ type: "response.created", response: { id: "resp_1", usage: null } } as never),
          ...times(4, named({ type: "response.output_text.delta", delta: "word" } as never)),
          named({ type: "response.output_text.done", text: "wordwordwordword".repeat(9) } as never),
          named({ type: "response.in_progress" }),
        ],
      },
    ],
    leavesAfter: 6,
    charged: inputOf(responses) + 4,
    estimated: inputOf(responses) + 4,
  },
  {
    way: "a client that leaves before the head costs its estimated input",
    path: chatPath,
    body: stream,
    answers: ["client leaves before the head"],
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
    answers: ["client leaves after the head"],
    charged: inputOf(chat) + 100,
    estimated: inputOf(chat) + 100,
  },
  {
    way: "several conversations in one request of vLLM's cost what each of them reserved",
    path: batchPath,
    body: batch,
    answers: ["client leaves after the head"],
    charged: inputOf(batch) + 300,
    estimated: inputOf(batch) + 300,
  },
  {
    way: "several conversations whose client leaves before the head cost their estimated input",
    path: batchPath,
    body: batch,
    answers: ["client leaves before the head"],
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
    answers: [{ events: times(9, chunk({ content: "x".repeat(100) }, { usage: tokens(9, 3) })) }],
    leavesAfter: 3,
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
          ...times(50, chunk({ content: "b" }, { index: 1 })),
        ],
      },
    ],
    leavesAfter: 40,
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
          } as never),
          named({
            type: "message_delta",
            delta: {},
            usage: { output_tokens: 5, cache_creation_input_tokens: 7 },
          } as never),
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
    const result = await limited(sent);
    expect({ charged: result.charged, estimated: result.estimated }).toEqual({ charged, estimated });
    expect(result.record?.estimatedTokens ?? 0).toBe(estimated);
  });

  test("estimates stand in no count", async () => {
    const { counted, record } = await limited({
      path: chatPath,
      body: stream,
      answers: [{ events: times(9, word) }],
      leavesAfter: 3,
    });
    expect(counted).toEqual({ inputTokens: 0, outputTokens: 0 });
    expect(record).toMatchObject({ usage: { inputTokens: 0, outputTokens: 0 }, isUncounted: false });
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
    const { reserved } = await limited({ path, body, answers: [{ json: { usage: tokens(1, 1) } }] });
    expect(reserved).toBe(output === 1e9 ? 1e9 : inputOf(body) + output);
  });

  test.each([
    ["an image, whatever its size", (url: string) => [{ type: "image_url", image_url: { url } }], 1500],
    ["text that looks like one, by its characters", (url: string) => url, 30_000],
    [
      "letters where an image stands that no backend reads, by their number",
      (url: string) => [{ type: "text", text: "Hi", image_url: url.replaceAll("A", "한") }],
      30_000,
    ],
    [
      "audio once, whatever follows it",
      (url: string) => [
        { type: "input_audio", input_audio: { data: url.slice("data:image/png;base64,".length), format: "wav" } },
        ...Array.from({ length: 9 }, () => ({ type: "text", text: "Hi" })),
      ],
      3000,
    ],
  ] as const)("is for %s", async (_, contentOf, expected) => {
    const messages = (length: number) => [
      { role: "user", content: contentOf(`data:image/png;base64,${"A".repeat(length)}`) },
    ];
    const answer: Answer = { json: { usage: tokens(1, 1) } };
    for (const [path, bodyOf] of [
      [chatPath, (length: number) => ({ ...base, messages: messages(length) })],
      [batchPath, (length: number) => ({ ...base, messages: [messages(length)] })],
      [requestsPath, (length: number) => ({ requests: [{ params: { ...base, messages: messages(length) } }] })],
    ] as const) {
      const [large, none] = [bodyOf(90_000), bodyOf(0)];
      const { reserved } = await limited({ path, body: large, answers: [answer] });
      expect(reserved).toBe(inputOf(none) + expected + base.max_tokens);
    }
  });
});

describe("a key without limits of tokens", () => {
  test.each([null, { ...noRules, requests_per_minute: 9 }])("is charged for nothing but its counts", async (rules) => {
    const send = startProxy()(rules);
    for (const { charged: _, estimated: __, way: ___, ...sent } of ways) {
      const result = await send(sent);
      expect(result.estimated).toBe(0);
      expect(result.charged).toBe(result.counted.inputTokens + result.counted.outputTokens);
    }
  });

  test("has no event parsed for a charge, and a limited key only those that are like none before", async () => {
    const parse = spyOn(JSON, "parse");
    const parsedBy = async (send: typeof limited): Promise<number> => {
      parse.mockClear();
      await send({ path: chatPath, body: stream, answers: [{ events: [...times(9, word), done] }] });
      return parse.mock.calls.filter(([json]) => json.includes('"content":"word"')).length;
    };
    expect([await parsedBy(unlimited), await parsedBy(limited)]).toEqual([0, 1]);
    parse.mockRestore();
  });

  test.each<[string, Sent, boolean]>([
    [
      "cut before its usage",
      { path: chatPath, body: stream, answers: [{ events: times(9, word) }], leavesAfter: 3 },
      true,
    ],
    [
      "cut after the placeholder of a message",
      { path: "/v1/messages", body: stream, answers: [{ events: [opening, ...times(9, ": \n\n")] }], leavesAfter: 3 },
      true,
    ],
    ["whole without usage", { path: chatPath, body: stream, answers: [{ events: [word, done] }] }, false],
    [
      "cut with usage",
      {
        path: chatPath,
        body: stream,
        answers: [{ events: times(9, chunk({}, { usage: tokens(1, 2) })) }],
        leavesAfter: 3,
      },
      false,
    ],
  ])("has a stream that was %s marked as not counted, or not", async (_, sent, isUncounted) => {
    expect((await unlimited(sent)).record).toMatchObject({ isUncounted });
  });
});

describe("a backend that refuses stream_options", () => {
  const refusal = (message: string): Answer => ({ json: { error: { message } }, status: 400 });
  const unknown = refusal("Unknown parameter: stream_options");
  const plain: Answer = { events: [...times(3, word), done] };

  test("gets the request again without them, and then no more", async () => {
    const send = startProxy()(tokenRules);
    const first = await send({ path: chatPath, body: stream, answers: [unknown, plain] });
    expect(first.bodies).toEqual([{ ...stream, stream_options: { include_usage: true } }, stream]);
    expect(first).toMatchObject({ status: 200, charged: inputOf(stream) + 3 });
    expect(first.record).toMatchObject({ status: 200, sends: 2, changes: undefined });
    const next = await send({ path: chatPath, body: stream, answers: [plain] });
    expect(next.bodies).toEqual([stream]);
    expect(next.record?.sends).toBeUndefined();
    // Another path may be another program.
    const other = await send({ path: "/v1/completions", body: text, answers: [plain] });
    expect(other.bodies).toEqual([{ ...text, stream_options: { include_usage: true } }]);
  });

  test("is not believed if it refuses the request without them too", async () => {
    const send = startProxy()(tokenRules);
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
    const result = await startProxy()(tokenRules)(sent);
    expect(result.bodies).toHaveLength(1);
    const [answer] = sent.answers;
    expect(result).toMatchObject({ status: 400, text: JSON.stringify((answer as { json: object }).json), charged: 0 });
  });
});

describe("a backend that sends usage unasked", () => {
  const whole: Answer = { events: [word, chunk({}, { end: true }), alone(tokens(9, 1)), done] };
  const silent: Answer = { events: [word, chunk({}, { end: true }), done] };

  test("is known too if it sends an empty choice beside the usage, and not by usage that is zero or beside text", async () => {
    const send = startProxy();
    const beside = (usage: object, content = ""): Answer => ({
      events: [word, chunk({}, { end: true }), chunk({ role: "assistant", content }, { usage }), done],
    });
    for (const answer of [
      beside(tokens(0, 0)),
      beside(tokens(9, 1), "word"),
      beside(tokens(9, 1), "x".repeat(99_999)),
    ]) {
      await send(null)({ path: chatPath, body: stream, answers: [answer] });
      expect((await send(tokenRules)({ path: chatPath, body: stream, answers: [whole] })).text).not.toContain("usage");
    }
    await send(null)({ path: chatPath, body: stream, answers: [beside(tokens(9, 1))] });
    expect((await send(tokenRules)({ path: chatPath, body: stream, answers: [whole] })).text).toContain("usage");
  });

  test("is known by the streams of other keys, and keys with limits of tokens then get it too", async () => {
    const send = startProxy();
    const sent = { path: chatPath, body: stream, answers: [whole] };
    expect((await send(tokenRules)(sent)).text).not.toContain("usage");
    const asked = { ...stream, stream_options: { include_usage: true } };
    await send(null)({ ...sent, body: asked });
    expect((await send(tokenRules)(sent)).text).not.toContain("usage");
    const { text: unforced } = await send(null)(sent);
    expect((await send(tokenRules)(sent)).text).toBe(unforced);
    // It was replaced by another one.
    await send(null)({ ...sent, answers: [silent] });
    expect((await send(tokenRules)(sent)).text).not.toContain("usage");
  });
});
