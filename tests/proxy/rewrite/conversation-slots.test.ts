import { describe, expect, test } from "bun:test";
import { readJson } from "../../../src/proxy/json/read.ts";
import { createSlot } from "../../../src/proxy/json/slots.ts";
import { createConversationSlots } from "../../../src/proxy/rewrite/conversation-slots.ts";

function messagesOf(body: unknown): [role: string, text: string][] {
  return messagesIn(JSON.stringify(body));
}

function messagesIn(json: string): [role: string, text: string][] {
  const bytes = Buffer.from(json);
  const { messages, system, list } = createConversationSlots();
  expect(readJson(bytes, createSlot({ members: { messages, system } }))).toBe(true);
  return list(bytes)
    .filter(({ role }) => role !== "other")
    .map(({ role, text }) => [role, text]);
}

test("messages of the user are listed in order, the member system first", () => {
  const messages = [
    { role: "user", content: "one\n😀" },
    { role: "assistant", content: "two" },
    { role: "user", content: "three" },
  ];
  expect(messagesOf({ messages, system: "zero" })).toEqual([
    ["system", "zero"],
    ["user", "one\n😀"],
    ["user", "three"],
  ]);
});

test("system and developer messages are listed if they are among the first two", () => {
  const [one, two, three] = [
    { role: "developer", content: "1" },
    { content: [{ text: "2", type: "text" }], role: "system" },
    { role: "system", content: "3" },
  ];
  const assistant = { role: "assistant", content: "hello" };
  expect(messagesOf({ messages: [one, two, three] }).map(([, text]) => text)).toEqual(["1", "2"]);
  expect(messagesOf({ messages: [assistant, two, three] }).map(([, text]) => text)).toEqual(["2"]);
  expect(messagesOf({ messages: [assistant, assistant, three] })).toEqual([]);
});

test("a message without text has none of the next one's", () => {
  const image = { role: "system", content: [{ type: "image_url" }] };
  const text = { role: "user", content: [{ type: "text", text: "one" }] };
  expect(messagesOf({ messages: [image, text] })).toEqual([
    ["system", ""],
    ["user", "one"],
  ]);
});

test("of duplicates the last counts", () => {
  const body = `{
    "messages": [{ "role": "system", "content": "0" }, { "role": "user", "content": "1" }],
    "messages": [{ "role": "tool", "role": "user", "content": ["x"], "content": "2", "x": { "content": "3" } }]
  }`;
  expect(messagesIn(body)).toEqual([["user", "2"]]);
  expect(messagesIn(`${body.slice(0, -2)}, "messages": null }`)).toEqual([]);
  expect(messagesIn(`${body.slice(0, -2)}, "messages": [] }`)).toEqual([]);
});

test("only the latest messages of the user are kept, not counting empty ones", () => {
  const messages = Array.from({ length: 2000 }, (_, index) => ({
    role: "user",
    content: index % 2 > 0 ? "" : `${index}`,
  }));
  const listed = messagesOf({ messages }).map(([, text]) => Number(text));
  expect(listed).toHaveLength(90);
  expect(listed.at(-1)).toBe(1998);
  expect(listed).toEqual(listed.toSorted((a, b) => a - b));
});

test("a long text is decoded only as far as it is read", () => {
  const long = '\\é😀\u0001"'.repeat(200_000);
  const text = messagesOf({ messages: [{ role: "user", content: `start${long}end` }] })[0]?.[1] ?? "";
  expect(text.length).toBe(1501);
  expect(text.slice(0, 1000)).toBe(`start${long}`.slice(0, 1000));
  expect(text.slice(-500)).toBe(`${long}end`.slice(-500));
});

test("of many text parts the first and last are read", () => {
  const content = Array.from({ length: 10_000 }, (_, index) => ({ type: "text", text: `${index} `.repeat(50) }));
  const text = messagesOf({ messages: [{ role: "user", content }] })[0]?.[1] ?? "";
  const whole = content.map((part) => part.text).join("\n");
  expect(text.slice(0, 1000)).toBe(whole.slice(0, 1000));
  expect(text.slice(-500)).toBe(whole.slice(-500));
});

test("text parts are joined and other parts are left out", () => {
  const content = [
    { type: "text", text: "a", cache_control: { type: "ephemeral" } },
    { type: "image_url", image_url: { url: "data:," }, text: "caption of a machine" },
    { type: "tool_result", content: [{ type: "text", text: "output" }] },
    { type: "thinking", thinking: "hm", text: "hm" },
    { type: "text", text: 7 },
    "bare",
    { text: "b", type: "te\u0078t" },
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

test("a content without text is not listed, except as a system message", () => {
  const contents = [null, 7, {}, [], "", [{ type: "text", text: "" }], [{ type: "image_url" }]];
  for (const content of contents) expect(messagesOf({ messages: [{ role: "user", content }] })).toEqual([]);
  expect(messagesOf({ system: [], messages: [{ role: "system", content: null }] })).toEqual([
    ["system", ""],
    ["system", ""],
  ]);
});
