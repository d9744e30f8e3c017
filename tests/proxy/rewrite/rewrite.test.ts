import { describe, expect, test } from "bun:test";
import {
  createRewriter,
  type Rewritten,
  hanGuardPrefix,
  maximumEffortPrefix,
} from "../../../src/proxy/rewrite/rewrite.ts";
import { rewriteText } from "../../support/rewritten.ts";
import { eventLoopPortions } from "../../../src/proxy/json/read.ts";
import { familyRules, rewriteRules, rewriterOf, rulesOf } from "../../support/rewrite-rules.ts";

const paths = ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/v1/embeddings"];
const everyRule = rewriteRules({
  ...familyRules,
  rewriteUnknownModels: true,
  hanGuard: true,
  forceStreamUsage: "continuous",
});
const rewrite = rewriterOf(everyRule);
const noUsageAdded = { includeUsage: false, continuousUsage: false };
const untouched = { body: undefined, stream: false, usageAdded: noUsageAdded };
const untouchedBytes = {
  target: rulesOf(everyRule).names.unnamed,
  isObject: false,
  asksForUsage: false,
  capExemption: undefined,
  maxTokens: undefined,
  times: 1,
  prompts: 1,
  notAllowed: {},
  isStored: true,
  model: undefined,
  pieces: undefined,
  stream: false,
  usageAdded: noUsageAdded,
};

test("all rules together change only their own values", () => {
  const body = `{
  "model" : "claude-large", "seed": 12345678901234567890, "temperature":1.0,
  "max_tokens": 99999 , "stop":["\\u003c/end\\u003e"],
  "messages": [ {"role":"user","content":"Why is the sky blue, and the sunset red?"} ],
  "output_config":{"effort":"max"}, "stream":true, "top_p":0.950, "temperature":1.00
}
`;
  const prefixes = JSON.stringify(`${maximumEffortPrefix}\n\n${hanGuardPrefix}`);
  expect(rewriteText("/v1/chat/completions", body, everyRule)).toEqual({
    body: `{
  "model" : "Deep-V4", "seed": 12345678901234567890, "temperature":1.0,
  "max_tokens": 16384 , "stop":["\\u003c/end\\u003e"],
  "messages": [{"role":"system","content":${prefixes}}, {"role":"user","content":"Why is the sky blue, and the sunset red?"} ],
  "output_config":{"effort":"max"}, "stream":true, "top_p":0.950, "temperature":1.00,"chat_template_kwargs":{"thinking":true,"reasoning_effort":"max"},"stream_options":{"include_usage":true,"continuous_usage_stats":true}
}
`,
    stream: true,
    usageAdded: { includeUsage: true, continuousUsage: true },
  });
});

describe("whether a body requests a stream is read as leniently as by backends", () => {
  const isStream = (members: string) => rewriteText("/v1/messages", `{${members}}`, rewriteRules()).stream;
  const values = (words: readonly string[]) => words.flatMap((word) => [`"${word}"`, `"${word.toUpperCase()}"`]);

  const falseWords = values(["0", "f", "false", "n", "no", "off"]);
  const trueWords = values(["1", "t", "true", "y", "yes", "on"]);

  test.each(["null", "false", "0", "0.0", "-0", "0e9", '"f\\u0061lse"', ...falseWords])("%s requests none", (value) => {
    expect(isStream(`"stream":${value}`)).toBe(false);
  });

  const others = ["true", "1", "1.0", "2", "-1", '""', '" "', '"maybe"', "[]", "{}", "NaN"];
  test.each([...others, ...trueWords])("%s requests one", (value) => {
    expect(isStream(`"stream":${value}`)).toBe(true);
  });

  test("the last of duplicates counts, a nested one does not", () => {
    expect(isStream('"stream":true,"stream":false')).toBe(false);
    expect(isStream('"stream":false,"stream":true')).toBe(true);
    expect(isStream('"x":{"stream":true}')).toBe(false);
    expect(isStream("")).toBe(false);
  });
});

test("up to 64 duplicates of a model name are rewritten, more are refused", () => {
  const body = (count: number) => `{${'"model":"claude-x",'.repeat(count)}"x":{${'"model":1,'.repeat(99)}"y":0}}`;
  expect(rewriteText("/v1/x", body(64), everyRule).body).toBe(body(64).replaceAll("claude-x", "Deep-V4"));
  for (const path of [...paths, "/v1/x"]) {
    expect(rewrite(path, Buffer.from(body(65)))).toEqual({ refused: "too_many_duplicates" });
  }
});

test("a model name of megabytes is resolved by its start and end", () => {
  const long = "x".repeat(100_000);
  const body = (name: string) => `{"model":"${name}"}`;
  const vendorOnly = rewriteRules(familyRules);
  expect(rewriteText("/v1/x", body(`claude-${long}`), vendorOnly).body).toBe(body("Deep-V4"));
  expect(rewriteText("/v1/x", body(`${long}-nonthink`), vendorOnly).body).toBe(body("Deep-V4"));
  expect(rewriteText("/v1/x", body(long), vendorOnly).body).toBeUndefined();
});

test("a body after a byte order mark is rewritten and keeps the mark", () => {
  expect(rewriteText("/v1/x", '\ufeff{"max_tokens":99999}', everyRule).body).toBe('\ufeff{"max_tokens":16384}');
});

describe("a hundred thousand levels", () => {
  const levels = 100_000;
  const deep = "[".repeat(levels) + "]".repeat(levels);
  const names = ["model", "max_tokens", "system", "stream_options", "chat_template_kwargs", "output_config", "x"];
  const places = [
    ...names.map((name) => `{"${name}":${deep}}`),
    `{"messages":[${deep}]}`,
    `{"messages":[{"role":"user","content":${deep}}]}`,
    `{"messages":[{"role":"user","content":[{"type":"text","text":${deep}}]}]}`,
  ];

  test.each(places.map((body): [place: string, body: string] => [body.replace(deep, "…"), body]))(
    "in %s are skipped",
    (_, place) => {
      const body = `${place.slice(0, -1)},"max_completion_tokens":99999}`;
      for (const path of paths) {
        const sent = rewriteText(path, body, everyRule).body ?? "";
        // Compared as booleans, so that a failure does not print the levels.
        expect([sent.includes(deep), /"max_completion_tokens":\d{1,5}\b/.test(sent), sent.includes("99999")]).toEqual([
          true,
          true,
          false,
        ]);
        expect(rewriteText(path, body.slice(0, -2), everyRule)).toEqual(untouched);
      }
    },
  );
});

test.each(["/v1/chat/completions", "/v1/messages", "/v1/responses"])(
  "a conversation that grows is rewritten on %s as if each of its bodies were the first",
  async (path) => {
    const turn = (index: number): object[] => [
      {
        role: "user",
        content: [{ type: "text", text: `${index}. read "src/${index}.ts"\n${"and say why ".repeat(200)}` }],
      },
      { role: "assistant", content: null, tool_calls: [{ function: { name: "read", arguments: '{"path":"a"}' } }] },
      { role: "tool", content: "const a = '漢字';\n".repeat(300) },
    ];
    const tools = Array.from({ length: 40 }, (_, index) => ({
      name: `tool_${index}`,
      description: "does it ".repeat(100),
    }));
    const turns: object[] = [];
    for (let index = 0; index < 45; index += 1) {
      turns.push(...turn(index));
      const head = { model: "claude-x", messages: turns, input: turns, system: "Be brief.", tools };
      const bytes = Buffer.from(JSON.stringify({ ...head, max_tokens: 99_999 + index, stream: index % 2 === 0 }));
      const first = createRewriter({ ...rulesOf(everyRule), recall: undefined, knownBlocks: undefined });
      const [known, anew] = await Promise.all([rewrite(path, bytes), first(path, bytes)]);
      expect(known).toEqual(anew);
      if (!("pieces" in known)) throw new Error("The body was refused");
      expect(JSON.parse(Buffer.concat(known.pieces ?? []).toString())).toMatchObject({ model: "Deep-V4", tools });
    }
  },
);

describe("a long body", () => {
  const padding = `"padding":"${"x".repeat(530_000)}"`;

  test("is rewritten in portions, like a short one", async () => {
    const body = `{"model":"claude-x","messages":[{"role":"user","content":"hello"}],"stream":true,"max_tokens":99999}`;
    const short = rewriteText("/v1/messages", body, everyRule);
    const long = Buffer.from(`{${padding},${body.slice(1)}`);
    let nowMs = 0;
    let portions = 0;
    const rewriteInPortions = rewriterOf(everyRule, {
      portionMs: 2,
      now: () => (nowMs += 1),
      waitForTurn: () => Promise.resolve(void (portions += 1)),
    });
    const rewritten = await rewriteInPortions("/v1/messages", long);
    const { pieces = [], stream, usageAdded } = rewritten as Rewritten;
    expect({ stream, usageAdded, body: Buffer.concat(pieces).toString() }).toEqual({
      ...short,
      body: `{${padding},${short.body?.slice(1)}`,
    });
    expect(portions).toBe(33);
  });

  test("of less, that takes long, is rewritten beside others as if it came alone", async () => {
    const member = String.raw`"\u0061":1,`;
    const bodies = ["claude-x", "gpt-x", "Deep-V4"].map((model, index) =>
      Buffer.from(`{"model":"${model}","max_tokens":${99_999 + index},${member.repeat(5000)}"stream":true}`),
    );
    let nowMs = 0;
    const beside = rewriterOf(everyRule, { ...eventLoopPortions, now: () => (nowMs += 1) });
    const running = bodies.map((body) => beside("/v1/messages", body));
    expect(running.every((one) => one instanceof Promise)).toBe(true);
    const alone = await Promise.all(bodies.map((body) => rewrite("/v1/messages", body)));
    expect(await Promise.all(running)).toEqual(alone);
  });

  test("of 512 KiB is rewritten at once, a longer one is not", () => {
    const body = Buffer.from(`{${padding}}`);
    expect(rewrite("/v1/x", Buffer.alloc(512 * 1024, " "))).toEqual(untouchedBytes);
    expect(rewrite("/v1/x", body)).toBeInstanceOf(Promise);
  });
});

test("the model names asked for and sent are those of the last member, which backends use", () => {
  const modelOf = (body: string) => (rewrite("/v1/x", Buffer.from(body)) as Rewritten).model;
  expect(modelOf('{"model":"x","model":"claude-x"}')).toEqual({ asked: "claude-x", sent: "Deep-V4", name: "Deep-V4" });
  expect(modelOf('{"model":"Deep-V4"}')).toEqual({ asked: "Deep-V4", sent: "Deep-V4", name: "Deep-V4" });
  expect(modelOf('{"model":5}')).toBeUndefined();
  expect(modelOf("{}")).toBeUndefined();
});
