import { describe, expect, test } from "bun:test";
import { listMessages, messagesShape, systemShape } from "../../../src/proxy/rewrite/conversation.ts";
import { type JsonObjectNode, objectShape, readJson } from "../../../src/proxy/json/read.ts";

const shape = objectShape({ messages: messagesShape, system: systemShape });

function messagesOf(body: unknown): [role: string, text: string][] {
  const json = JSON.stringify(body);
  return listMessages(json, readJson(json, shape) as JsonObjectNode).map(({ role, text }) => [role, text]);
}

test("messages are listed in order, the member system first", () => {
  const messages = [
    { role: "user", content: "one\n😀" },
    { role: "assistant", content: "two" },
    { role: "user", content: "three" },
  ];
  expect(messagesOf({ messages, system: "zero" })).toEqual([
    ["system", "zero"],
    ["user", "one\n😀"],
    ["assistant", "two"],
    ["user", "three"],
  ]);
});

test("the role developer counts as system", () => {
  expect(messagesOf({ messages: [{ role: "developer", content: "a" }] })).toEqual([["system", "a"]]);
});

test("text parts are joined and other parts are left out", () => {
  const content = [
    { type: "text", text: "a", cache_control: { type: "ephemeral" } },
    { type: "image_url", image_url: { url: "data:," }, text: "caption of a machine" },
    { type: "tool_result", content: [{ type: "text", text: "output" }] },
    { type: "thinking", thinking: "hm", text: "hm" },
    { type: "text", text: 7 },
    "bare",
    { type: "text", text: "b" },
  ];
  const expected = "a\n\nb";
  expect(messagesOf({ system: content, messages: [{ role: "user", content }] })).toEqual([
    ["system", expected],
    ["user", expected],
  ]);
});

describe("nothing is listed", () => {
  test.each([
    [[{ role: "tool", content: "output" }]],
    [[{ role: "function", content: "output" }]],
    [[{ role: "user" }]],
    [[{ content: "a" }]],
    [["user", 7, null, []]],
    [{ role: "user", content: "a" }],
    ["user"],
    [null],
  ])("for messages %j", (messages) => {
    expect(messagesOf({ messages })).toEqual([]);
  });
});

test("a content that is not text is empty", () => {
  expect(messagesOf({ messages: [{ role: "assistant", content: null }] })).toEqual([["assistant", ""]]);
});
