import { describe, expect, test } from "bun:test";
import { readJson } from "../../../src/proxy/json/read.ts";
import { createSlot } from "../../../src/proxy/json/slots.ts";
import { createModelNames } from "../../../src/proxy/rewrite/model-names.ts";
import { createRewriter, streamUsages } from "../../../src/proxy/rewrite/rewrite.ts";
import { backendOf, fileCatalog, modelOf } from "../../support/catalog.ts";
import { createOpeningSlots } from "../../../src/proxy/rewrite/opening.ts";

const slots = createOpeningSlots();

/** The opening of a body, its parts as text. */
function openingOf(body: unknown) {
  const bytes = new TextEncoder().encode(typeof body === "string" ? body : JSON.stringify(body));
  slots.clear();
  expect(readJson(bytes, createSlot({ members: slots.members }))).toBe(true);
  const { name, volatile: _volatile, messages: _messages, ...parts } = slots.read(bytes);
  const text = (spans: readonly { start: number; end: number }[]) =>
    spans.map(({ start, end }) => new TextDecoder().decode(bytes.subarray(start, end))).join("");
  return { name, tools: text(parts.tools), system: text(parts.system), user: text(parts.user) };
}

const user = { role: "user", content: "Hello" };
const json = JSON.stringify;

const rewriterFor = (backends: readonly string[], hanGuard: boolean) =>
  createRewriter({
    names: createModelNames(
      fileCatalog(
        backends.map((name) => backendOf(name)),
        [modelOf("m", backends, { hanGuard })],
      ),
    ),
    streamUsage: streamUsages.asSet,
    hasKeyRules: false,
  });

test.each([true, false])(
  "a rewriter for several backends reads the opening; with the Han guard: %p",
  async (hanGuard) => {
    const bytes = new TextEncoder().encode(json({ model: "m", system: "Be brief.", messages: [user] }));
    for (const path of ["/v1/chat/completions", "/v1/messages", "/v1/responses"]) {
      const rewritten = await rewriterFor(["a", "b"], hanGuard)(path, bytes);
      const opening = "opening" in rewritten ? rewritten.opening : undefined;
      expect(opening?.system.map(({ start, end }) => new TextDecoder().decode(bytes.slice(start, end)))).toEqual([
        '"Be brief."',
      ]);
      expect(opening?.user).toHaveLength(1);
    }
  },
);

test("a rewriter for one backend reads no opening", async () => {
  const bytes = new TextEncoder().encode(json({ model: "m", messages: [user] }));
  expect(await rewriterFor(["a"], true)("/v1/chat/completions", bytes)).not.toHaveProperty("opening");
});

describe("the opening of a conversation", () => {
  test.each([
    [
      "chat",
      { messages: [{ role: "system", content: "Be brief." }, user, { role: "assistant", content: "Hi" }] },
      { system: json({ role: "system", content: "Be brief." }), user: json(user), tools: "" },
    ],
    [
      "several instructions",
      { messages: [{ role: "developer", content: "A" }, { role: "system", content: "B" }, user] },
      {
        system: json({ role: "developer", content: "A" }) + json({ role: "system", content: "B" }),
        user: json(user),
        tools: "",
      },
    ],
    [
      "a system turn after the first",
      { messages: [user, { role: "system", content: "Later." }, user] },
      { system: "", user: json(user), tools: "" },
    ],
    [
      "messages",
      { system: "Be brief.", tools: [{ name: "t" }], messages: [user, user] },
      { system: '"Be brief."', tools: '[{"name":"t"}]', user: json(user) },
    ],
    [
      "responses with a text",
      { instructions: "Be brief.", input: "Hello" },
      { system: '"Be brief."', tools: "", user: '"Hello"' },
    ],
    [
      "responses with items",
      { input: [{ role: "developer", content: "A" }, user] },
      { system: json({ role: "developer", content: "A" }), tools: "", user: json(user) },
    ],
    ["nothing", { model: "m", prompt: "Hello" }, { system: "", tools: "", user: "" }],
    ["what is no message", { messages: [1, null, "user", user] }, { system: "", tools: "", user: json(user) }],
  ])("of %s", (_, body, expected) => {
    expect(openingOf(body)).toEqual({ name: undefined, ...expected });
  });

  test.each([
    ["a prompt cache key", { prompt_cache_key: "k" }, "k"],
    ["a conversation", { conversation: "conv_1" }, "conv_1"],
    ["a conversation as an object", { conversation: { id: "conv_1" } }, "conv_1"],
    ["a session in the user id", { metadata: { user_id: json({ device_id: "d", session_id: "1f-2e" }) } }, "1f-2e"],
    ["an older session in the user id", { metadata: { user_id: "user_ab_account__session_1f-2e" } }, "1f-2e"],
    ["a user id without a session", { metadata: { user_id: "someone" } }, undefined],
    ["an empty key", { prompt_cache_key: "" }, undefined],
    ["a key that is no text", { prompt_cache_key: 7, conversation: [] }, undefined],
  ])("is named by %s", (_, body, name) => {
    expect(openingOf(body).name).toBe(name);
  });

  test.each([
    [
      "in the first text",
      {
        system: [
          { type: "text", text: "x-anthropic-billing-header: cch=1f2;" },
          { type: "text", text: "You are." },
        ],
      },
      '[{"type":"text","text":""},{"type":"text","text":"You are."}]',
    ],
    ["as a first line", { system: 'x-anthropic-billing-header: a\\"b; c\nYou are.' }, '"\\nYou are."'],
    ["nowhere", { system: "You are." }, '"You are."'],
  ])("leaves a volatile line out that stands %s", (_, body, system) => {
    expect(openingOf(body).system).toBe(system);
  });

  test("a body's opening does not linger in the next one's", () => {
    openingOf({ system: "A", messages: [user] });
    expect(openingOf({ prompt: "x" })).toEqual({ name: undefined, system: "", tools: "", user: "" });
  });

  test("a volatile line without an end is short", () => {
    const line = `x-anthropic-billing-header:${"x".repeat(100_000)}`;
    expect(openingOf({ system: line }).system).toBe(`"${json(line).slice(1 + 4096)}`);
  });
});
