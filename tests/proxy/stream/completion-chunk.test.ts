import { describe, expect, test } from "bun:test";
import { readCompletionChunk } from "../../../src/proxy/stream/filter.ts";

const read = (event: string) => readCompletionChunk(Buffer.from(event));
const chunk = (choice: string, rest = "") => read(`data: {"choices":[${choice}]${rest}}\n\n`);

describe("completion chunk", () => {
  test("has the position of its usage in bytes of the event", () => {
    const event = Buffer.from('event: 안녕\r\ndata:{"a":"안녕","choices":[],"usage": {"prompt_tokens":1} }\r\n\r\n');
    const found = readCompletionChunk(event);
    expect(found?.usage).toBe("object");
    expect(event.subarray(found?.usageValue.start, found?.usageValue.end).toString()).toBe('{"prompt_tokens":1}');
    expect(event.subarray(found?.tail).toString()).toBe(" }\r\n\r\n");
  });

  test.each([
    ["an object", ',"usage":{}', "object"],
    ["null", ',"usage":null', "null"],
    ["a number", ',"usage":7', "absent"],
    ["missing", "", "absent"],
  ] as const)("recognises usage that is %s", (_, rest, usage) => {
    expect(chunk("{}", rest)?.usage).toBe(usage);
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

  test("returns members of the last chunk as they are written", () => {
    const found = chunk("", ',"timings":{ "a" : 1.0 },"system_fingerprint":"fp\\u00e9"');
    expect(found?.findMember("timings")).toBe('{ "a" : 1.0 }');
    expect(found?.findMember("system_fingerprint")).toBe('"fp\\u00e9"');
    expect(found?.findMember("__tool_call_incomplete")).toBeUndefined();
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
