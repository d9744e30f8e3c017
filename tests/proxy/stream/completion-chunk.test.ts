import { describe, expect, test } from "bun:test";
import { readCompletionChunk } from "../../../src/proxy/stream/filter.ts";

const read = (event: string) => readCompletionChunk(Buffer.from(event));
const chunk = (choice: string, rest = "") => read(`data: {"choices":[${choice}]${rest}}\n\n`);

describe("completion chunk", () => {
  test("has the position of its usage in bytes of its JSON text", () => {
    const event = Buffer.from('event: 안녕\r\ndata:{"a":"안녕","choices":[],"usage": {"prompt_tokens":1} }\r\n\r\n');
    const found = readCompletionChunk(event);
    expect(found?.usage.kind).toBe("object");
    expect(found?.json.subarray(found.usage.start, found.usage.end).toString()).toBe('{"prompt_tokens":1}');
    expect(found?.json.subarray(found.root.tail).toString()).toBe(" }");
    expect(event.subarray(found?.line.end).toString()).toBe("\r\n\r\n");
  });

  test.each([
    ["an object", ',"usage":{}', "object", true],
    ["null", ',"usage":null', "literal", false],
    ["a number", ',"usage":7', "number", true],
    ["missing", "", "absent", false],
  ] as const)("recognises usage that is %s", (_, rest, kind, hasUsage) => {
    expect(chunk("{}", rest)).toMatchObject({ usage: { kind }, hasUsage, hasNull: kind === "literal" });
  });

  test("recognises choices, and whether one ends", () => {
    expect(chunk("")).toMatchObject({ hasChoices: false, isFinal: false });
    expect(chunk('{"finish_reason":null}')).toMatchObject({ hasChoices: true, isFinal: false });
    expect(chunk('{"finish_reason":null},{"finish_reason":"stop"}')).toMatchObject({ hasChoices: true, isFinal: true });
  });

  test.each([
    ["OpenAI", '{"delta":{"role":"assistant","content":null,"refusal":null},"logprobs":null}', false, false],
    ["older vLLM", '{"delta":{"content":""},"finish_reason":"stop","stop_reason":null}', false, false],
    ["vLLM's legacy completions", '{"text":"a","stop_reason":null}', true, false],
    ["SGLang", '{"delta":{"role":null,"content":"a"},"matched_stop":null}', true, true],
    ["newer SGLang", '{"delta":{"content":"a"},"matched_stop":null}', true, false],
    ["SGLang's legacy completions", '{"text":"a","matched_stop":7}', true, true],
    ["TGI", '{"delta":{"role":"assistant","content":"a","tool_calls":null}}', true, false],
  ])("tells by the choices of %s whether null means not set", (_, choice, nullIsUsual, nullWasReplaced) => {
    expect(chunk(choice)).toMatchObject({ nullIsUsual, nullWasReplaced });
  });

  test.each([
    ": comment\n\n",
    "data: [DONE]\n\n",
    "data: {}\n\n",
    'data: {"choices":{}}\n\n',
    'data: {"choices":[\n\n',
    "\n",
    "",
  ])("is undefined for %j", (event) => {
    expect(read(event)).toBeUndefined();
  });

  test("is undefined for data in several lines", () => {
    expect(read('data: {"choices":[]\ndata: }\n\n')).toBeUndefined();
  });
});
