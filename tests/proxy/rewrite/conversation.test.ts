import { describe, expect, test } from "bun:test";
import { listTurns, messagesShape, systemShape } from "../../../src/proxy/rewrite/conversation.ts";
import { type JsonObjectNode, objectShape, readJson } from "../../../src/proxy/json/read.ts";

const shape = objectShape({ messages: messagesShape, system: systemShape });

function turnsOf(body: unknown): [role: string, text: string][] {
  const text = JSON.stringify(body);
  return listTurns(text, readJson(text, shape) as JsonObjectNode).map((turn) => [turn.role, turn.text]);
}

test("turns come in order, a messages body's system first", () => {
  const messages = [
    { role: "user", content: "one\n😀" },
    { role: "assistant", content: "two" },
    { role: "user", content: "three" },
  ];
  expect(turnsOf({ messages, system: "zero" })).toEqual([
    ["system", "zero"],
    ["user", "one\n😀"],
    ["assistant", "two"],
    ["user", "three"],
  ]);
});

test("a developer speaks as the system does", () => {
  expect(turnsOf({ messages: [{ role: "developer", content: "a" }] })).toEqual([["system", "a"]]);
});

test("text parts are joined, and what is no text is left out", () => {
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
  expect(turnsOf({ system: content, messages: [{ role: "user", content }] })).toEqual([
    ["system", expected],
    ["user", expected],
  ]);
});

describe("no turn is made", () => {
  test.each([
    [[{ role: "tool", content: "output" }]],
    [[{ role: "function", content: "output" }]],
    [[{ role: "user" }]],
    [[{ content: "a" }]],
    [["user", 7, null, []]],
    [{ role: "user", content: "a" }],
    ["user"],
    [null],
  ])("of messages %j", (messages) => {
    expect(turnsOf({ messages })).toEqual([]);
  });
});

test("a content that is no text says nothing", () => {
  expect(turnsOf({ messages: [{ role: "assistant", content: null }] })).toEqual([["assistant", ""]]);
});
