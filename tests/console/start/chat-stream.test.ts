import { describe, expect, test } from "bun:test";
import { createChatReader, errorMessage } from "../../../console/src/start/chat-stream.ts";

const event = (json: unknown): string => `data: ${JSON.stringify(json)}\n\n`;
const delta = (fields: object): string => event({ choices: [{ delta: fields }] });
const usage = event({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } });

describe("a streamed chat", () => {
  const whole = `${delta({ content: "Hé" })}${delta({ reasoning_content: "hm" })}: comment\n\n${delta({ content: "llo" })}${usage}data: [DONE]\n\n`;

  test.each([1, 2, 7, 10_000])("is read in pieces of %d characters", (size) => {
    const reader = createChatReader();
    for (let from = 0; from < whole.length; from += size) reader.push(whole.slice(from, from + size));
    expect(reader.progress()).toEqual({
      text: "Héllo",
      reasoning: "hm",
      inputTokens: 3,
      outputTokens: 2,
      error: undefined,
    });
  });

  test("may have lines that end with CRLF", () => {
    const reader = createChatReader();
    reader.push(whole.replaceAll("\n", "\r\n"));
    expect(reader.progress().text).toBe("Héllo");
  });

  test("reports an error inside it", () => {
    const reader = createChatReader();
    reader.push(event({ error: { message: "out of memory" } }));
    expect(reader.progress().error).toBe("out of memory");
  });

  test.each(["data: null\n", "data: {\n", "data: 7\n", 'data: {"choices":7}\n', 'data: {"choices":[null]}\n', "x\n"])(
    "ignores the line %p",
    (line) => {
      const reader = createChatReader();
      reader.push(line);
      expect(reader.progress().text).toBe("");
      expect(reader.progress().error).toBeUndefined();
    },
  );
});

test.each([
  ['{"error":{"message":"No such model"}}', "No such model"],
  ['{"error":"Missing key"}', "Missing key"],
  ['{"message":"Gone"}', "Gone"],
  ["<h1>Bad gateway</h1>", "The server responded with status 502"],
  ["null", "The server responded with status 502"],
])("the error response %s says %s", (body, message) => {
  expect(errorMessage(body, 502)).toBe(message);
});
