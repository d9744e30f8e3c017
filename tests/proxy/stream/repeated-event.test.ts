import { describe, expect, spyOn, test } from "bun:test";
import fc from "fast-check";
import { createResponseCharge } from "../../../src/proxy/response/count.ts";
import { OutputObserver } from "../../../src/proxy/stream/output.ts";
import { kindOf } from "../../../src/proxy/stream/body-kind.ts";
import { Passage } from "../../../src/proxy/stream/passage.ts";
import { RepeatedEvent } from "../../../src/proxy/stream/output.ts";

const bytesOf = (text: string): Uint8Array => Buffer.from(text);
const json = (content: string): string => `{"id":"c","choices":[{"index":0,"delta":{"content":${content}}}]}`;
const event = (content: string): string => `data: ${json(content)}\n\n`;

describe("a repeated event", () => {
  const learned = (text = "word") => {
    const repeated = new RepeatedEvent();
    repeated.learn(bytesOf(json(JSON.stringify(text))), text);
    return (events: string) => repeated.lengthOf(bytesOf(events));
  };

  test.each<[string, string, number, number]>([
    ["one", event('"word"'), 1, 4],
    ["another text", event('" longer than before"'), 1, 19],
    ["several events", event('"a"') + event('""') + event('"bcd"'), 2, 4],
    ["lines that end in CRLF", event('"a"').replaceAll("\n", "\r\n") + event('"b"'), 2, 2],
    ["an event with a name", `event: content_block_delta\n${event('"a"')}`, 1, 1],
    ["letters of two bytes, three and four", event('"é안🙂"'), 1, "é안🙂".length],
    ["what is escaped", event('"a\\n\\"b\\\\\\uc548\\ud83d\\uDE42"'), 1, 'a\n"b\\안🙂'.length],
  ])("has the length of %s", (_name, events, count, characters) => {
    expect(learned()(events)).toEqual({ events: count, characters });
  });

  test.each([
    ["an escape that JSON does not have", event('"a\\x"')],
    ["half an escape", event('"a\\u00e"')],
    ["an escape without digits", event('"a\\uwxyz"')],
    ["an open string", event('"a\\"').replace("}}]}", "")],
    ["a control character", event('"a\tb"')],
    ["no string", event("null")],
    ["another member", event('"a","role":"assistant"')],
    ["another id", event('"a"').replace('"c"', '"d"')],
    ["a finish reason", event('"a"').replace("}}]}", '},"finish_reason":"stop"}]}')],
    ["a second line of data", event('"a"').replace("\n\n", "\ndata: b\n\n")],
    ["an id", `id: 7\n${event('"a"')}`],
    ["a comment", `: a\n\n${event('"a"')}`],
    ["the end", `${event('"a"')}data: [DONE]\n\n`],
    ["one line end", event('"a"').slice(0, -1)],
    ["a CRLF and a LF", event('"a"').replace("\n\n", "\r\n\n")],
    ["half of one", event('"a"').slice(0, 20)],
  ])("is none with %s", (_name, events) => {
    expect(learned()(events)).toBeUndefined();
  });

  test.each([
    ["is a name too", json('"content"'), "content", json('"x"').replace('{"content"', '{"x"')],
    ["looks like what is between a name and its value", json('":"'), ":", json('"a"')],
    ["is escaped", json('"\\u0063"'), "c", json('"\\u0063"').replace('"c"', '"d"')],
    ["makes it long", json(`"${"a".repeat(1024)}"`), "a".repeat(1024), json('"a"')],
  ])("is not learned if its text %s", (_name, learnt, own, other) => {
    const repeated = new RepeatedEvent();
    repeated.learn(bytesOf(learnt), own);
    expect(repeated.lengthOf(bytesOf(`data: ${other}\n\n`))).toBeUndefined();
  });

  test("may have its text twice", () => {
    const twice = (reasoning: string, again: string): string =>
      `{"delta":{"reasoning":${reasoning},"reasoning_content":${again}}}`;
    const repeated = new RepeatedEvent();
    repeated.learn(bytesOf(twice('"word"', '"word"')), "word");
    expect(repeated.lengthOf(bytesOf(`data: ${twice('" a"', '" a"')}\n\n`))).toEqual({ events: 1, characters: 2 });
    for (const [one, other] of [
      ['"a"', '"b"'],
      ['"a"', '"ab"'],
      ['"ab"', '"a"'],
    ] as const)
      expect(repeated.lengthOf(bytesOf(`data: ${twice(one, other)}\n\n`))).toBeUndefined();
  });

  test.each([
    (number: number, delta: string) => `{"type":"d","sequence_number":${number},"delta":${delta}}`,
    (number: number, delta: string) => `{"delta":${delta},"sequence_number":${number},"type":"d"}`,
    (number: number, delta: string) => `{"delta":${delta},"sequence_number":${number}}`,
  ])("may have a number of its own where the Responses API has it", (numbered) => {
    const repeated = new RepeatedEvent();
    repeated.learn(bytesOf(numbered(9, '"word"')), "word");
    const events = (...texts: string[]): Uint8Array => bytesOf(texts.map((one) => `data: ${one}\n\n`).join(""));
    const alike = events(numbered(10, '"a"'), numbered(1234, '"bc"'));
    expect(repeated.lengthOf(alike)).toEqual({ events: 2, characters: 3 });
    for (const other of ['"a"', "1.5", "-1", "null"]) {
      const text = numbered(10, '"a"').replace("10", other);
      expect(repeated.lengthOf(events(text))).toBeUndefined();
    }
  });

  test("is not looked for in a stream whose every event has a number of its own", () => {
    const repeated = new RepeatedEvent();
    for (let number = 0; number < 8; number++) repeated.learn(bytesOf(json(`"a","n":${number}`)), "a");
    repeated.learn(bytesOf(json('"a"')), "a");
    expect(repeated.lengthOf(bytesOf(event('"a"')))).toBeUndefined();
  });
});

describe("the output of a stream", () => {
  const delta = (content: string, rest = ""): string =>
    `{"choices":[{"index":0,"delta":{"content":"${content}"}${rest}}]}`;
  const skims = (first: string, second: string): boolean => {
    const observer = new OutputObserver();
    observer.onDocument(JSON.parse(first), 0, bytesOf(first));
    return observer.skim(bytesOf(`data: ${second}\n\n`));
  };

  test("is skimmed where an event is like one before", () => {
    expect(skims(delta("a"), delta("b"))).toBe(true);
  });

  test.each([
    ["ends a choice", (content: string) => delta(content, ',"finish_reason":"stop"')],
    ["has usage", (content: string) => delta(content).replace("{", '{"usage":{"completion_tokens":1},')],
    ["has a message", (content: string) => delta(content).replace("{", '{"message":{"id":"m"},')],
    ["has two texts", (content: string) => delta(content).replace('"content"', '"reasoning":"c","content"')],
  ])("is parsed where an event %s", (_name, eventWith) => {
    expect(skims(eventWith("a"), eventWith("b"))).toBe(false);
  });
});

const text = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.constantFrom("", "a", ":", "안녕", "🙂", '"', "\\", "usage", "id"),
);
const index = fc.nat({ max: 1 });
const usage = { prompt_tokens: 9, completion_tokens: 5 };
const choices = (one: object): object => ({ id: "c", object: "chat.completion.chunk", choices: [one] });
const document = fc.oneof(
  { weight: 40, arbitrary: text.map((content) => choices({ index: 0, delta: { content }, finish_reason: null })) },
  {
    weight: 20,
    arbitrary: fc
      .tuple(fc.nat(), text)
      .map(([at, delta]) => ({ type: "response.output_text.delta", sequence_number: at, delta })),
  },
  { weight: 4, arbitrary: text.map((part) => ({ type: "content_block_delta", index: 0, delta: { text: part } })) },
  fc.tuple(index, text).map(([at, content]) => choices({ index: at, delta: { content, reasoning: content } })),
  {
    weight: 10,
    arbitrary: text.map((part) => choices({ index: 0, delta: { reasoning: part, reasoning_content: part } })),
  },
  fc.tuple(index, text).map(([at, content]) => choices({ index: at, text: content, finish_reason: "stop" })),
  text.map((part) => choices({ index: 0, delta: { tool_calls: [{ function: { name: "f", arguments: part } }] } })),
  index.map((at) => Object.assign(choices({ index: at, delta: {}, finish_reason: "length" }), { usage })),
  fc.constantFrom<object>(
    { choices: [], usage },
    { ...choices({ index: 0, delta: { content: "" } }), usage },
    {
      type: "message_start",
      message: { usage: { input_tokens: 7, output_tokens: 1, cache_creation_input_tokens: 3 } },
    },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 4 } },
  ),
);
/** A chunk of whole events. */
const chunk = fc
  .array(fc.tuple(document, fc.boolean()), { minLength: 1, maxLength: 2 })
  .map((all) => all.map(([one, isNamed]) => `${isNamed ? "event: x\n" : ""}data: ${JSON.stringify(one)}\n\n`).join(""));

const read = async (chunks: readonly string[], path: string, skims: boolean): Promise<object> => {
  const contentType = "text/event-stream";
  const charge = createResponseCharge({
    reservation: { inputTokens: 7, tokens: 1000, texts: 1, prompts: 1 },
    method: "POST",
    path,
    response: new Response(null, { headers: { "content-type": contentType } }),
  });
  const output = charge?.output;
  const parsed = output && { onDocument: output.onDocument.bind(output) };
  const observer = skims ? output : parsed;
  const passage = new Passage(kindOf(contentType, null), { listener: { observer } });
  for (const one of chunks) passage.push(bytesOf(one));
  const seen = await passage.end();
  return { seen, cut: charge?.owed(seen, false), whole: charge?.owed(seen, true), output: charge?.output?.seen() };
};

test("what is skimmed is charged as if it were parsed", async () => {
  const parse = spyOn(JSON, "parse");
  let [skimmed, parsed] = [0, 0];
  await fc.assert(
    fc.asyncProperty(
      fc.array(chunk, { maxLength: 30 }),
      fc.constantFrom("/v1/chat/completions", "/v1/messages", "/v1/responses"),
      async (chunks, path) => {
        parse.mockClear();
        const charged = await read(chunks, path, true);
        skimmed += parse.mock.calls.length;
        parse.mockClear();
        expect(charged).toEqual(await read(chunks, path, false));
        parsed += parse.mock.calls.length;
      },
    ),
    { numRuns: 1000 },
  );
  parse.mockRestore();
  expect(skimmed).toBeLessThan(0.9 * parsed);
});
