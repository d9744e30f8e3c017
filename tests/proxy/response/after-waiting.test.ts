import { expect, test } from "bun:test";
import { eventsOfMessage } from "../../../src/proxy/response/after-waiting.ts";

const message = { id: "m", type: "message", content: [], stop_reason: "end_turn", usage: { output_tokens: 1 } };
const typesOf = (events: string | undefined): string[] =>
  [...(events ?? "").matchAll(/^event: (\w+)$/gm)].map(([, type = ""]) => type);

test.each([
  ["no JSON", "{"],
  ["an error", '{"type":"error","error":{"message":"overloaded"}}'],
  ["a chat completion", '{"object":"chat.completion","choices":[]}'],
  ["content that is no list", '{"type":"message","content":"text"}'],
])("%s is no message", (_, json) => {
  expect(eventsOfMessage(json)).toBeUndefined();
});

test("an empty message begins and ends", () => {
  expect(typesOf(eventsOfMessage(JSON.stringify(message)))).toEqual(["message_start", "message_delta", "message_stop"]);
});

test("a block of an unknown kind, or none, passes as it is", () => {
  const events = eventsOfMessage(JSON.stringify({ ...message, content: [{ type: "new", a: 1 }, null] }));
  expect(typesOf(events)).toEqual([
    "message_start",
    "content_block_start",
    "content_block_stop",
    "content_block_start",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
  expect(events).toContain('"content_block":{"type":"new","a":1}');
});
