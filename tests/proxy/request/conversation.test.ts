import { describe, expect, test } from "bun:test";
import type { Conversation } from "../../../src/domain/backends.ts";
import type { RequestChange } from "../../../src/domain/requests.ts";
import { readJson } from "../../../src/proxy/json/read.ts";
import { createSlot } from "../../../src/proxy/json/slots.ts";
import { conversationOf } from "../../../src/proxy/request/conversation.ts";
import { createOpeningSlots } from "../../../src/proxy/rewrite/opening.ts";
import { createAffinity } from "../../../src/routing/affinity.ts";
import claudeCode178 from "../../fixtures/client-requests/claude-code-2.1.178.json";
import claudeCode280 from "../../fixtures/client-requests/claude-code-2.1.280.json";
import claudeCode330 from "../../fixtures/client-requests/claude-code-2.1.330.json";
import { leastProcessorMs } from "../../support/processor-time.ts";
import codex from "../../fixtures/client-requests/codex-0.169.0.json";

interface Given {
  headers?: Record<string, string>;
  keyId?: number;
  changes?: readonly RequestChange[];
}

const read = (body: object, given?: Given): Conversation => opened(JSON.stringify(body), given)();

/** @returns finds the conversation of a body that was read */
function opened(json: string, { headers = {}, keyId = 1, changes = [] }: Given = {}): () => Conversation {
  const slots = createOpeningSlots();
  const bytes = new TextEncoder().encode(json);
  slots.clear();
  expect(readJson(bytes, createSlot({ members: slots.members }))).toBe(true);
  const opening = slots.read(bytes);
  return () => conversationOf(new Headers(headers), keyId, bytes, opening, { kinds: changes, maxTokens: undefined });
}

const nameOf = (...given: Parameters<typeof read>): number | undefined => read(...given).name;

const user = (content: unknown) => ({ role: "user", content });
const assistant = (content: unknown) => ({ role: "assistant", content });
const first = { system: "Be brief.", tools: [{ name: "t" }], messages: [user("Hello")] };

describe("a conversation is named", () => {
  const other = { ...first, messages: [user("Something else")] };

  test.each([
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "x-session-affinity",
    "x-affinity",
    "x-openwebui-chat-id",
    "x-session-id",
  ])("by the header %s, whatever it says", (header) => {
    const headers = { [header]: "s" };
    expect(nameOf(first, { headers })).toBe(nameOf(other, { headers }) ?? 0);
    expect(nameOf(first, { headers: { [header]: "t" } })).not.toBe(nameOf(first, { headers }) ?? 0);
    expect(nameOf({ ...first, prompt_cache_key: "k" }, { headers })).toBe(nameOf(first, { headers }) ?? 0);
  });

  test("not by a header that names a request", () => {
    expect(nameOf(first, { headers: { "x-client-request-id": "r" } })).toBe(nameOf(first) ?? 0);
  });

  test("by its beginning, the same at each turn", () => {
    expect(nameOf({ ...first, messages: [user("Hello"), assistant("Hi"), user("More")] })).toBe(nameOf(first) ?? 0);
    expect(nameOf(other)).not.toBe(nameOf(first) ?? 0);
    expect(nameOf({ ...first, system: "Be long." })).not.toBe(nameOf(first) ?? 0);
    expect(nameOf({ model: "m" })).toBeUndefined();
  });

  test("by its beginning, though a mark for caches wanders away from it", () => {
    const marked = user([{ type: "text", text: "Hello", cache_control: { type: "ephemeral" } }]);
    expect(nameOf({ ...first, messages: [marked] })).toBe(nameOf(first) ?? 0);
  });

  test("together with the key, in each of these ways", () => {
    for (const given of [{}, { headers: { "x-session-id": "s" } }])
      expect(nameOf(first, { ...given, keyId: 2 })).not.toBe(nameOf(first, given) ?? 0);
    const keyed = { ...first, prompt_cache_key: "k" };
    expect(nameOf(keyed, { keyId: 2 })).not.toBe(nameOf(keyed) ?? 0);
  });

  test("by no more than the beginning of what is long", () => {
    const long = (end: string) => ({ ...first, system: "x".repeat(100_000) + end });
    expect(nameOf(long("a"))).toBe(nameOf(long("b")) ?? 0);
  });

  test("and in a session, which agent's it is by its beginning", () => {
    const agentOf = (body: object, session = "s") => read(body, { headers: { "x-session-id": session } }).agent;
    const grown = { ...first, messages: [user("Hello"), assistant("Hi"), user("More")] };
    expect(agentOf(grown)).toBe(agentOf(first) ?? 0);
    for (const body of [other, { ...first, system: "Be long." }, { ...first, tools: [] }])
      expect(agentOf(body)).not.toBe(agentOf(first) ?? 0);
    expect(agentOf(first, "t")).not.toBe(agentOf(first) ?? 0);
    expect(read(first).agent).toBeUndefined();
  });

  test("and has its instructions in common with those of other keys", () => {
    expect(read(other, { keyId: 2 }).prefix).toBe(read(first).prefix ?? 0);
    expect(read({ ...first, tools: [] }).prefix).not.toBe(read(first).prefix ?? 0);
  });
});

/** What a backend that had the one is told to have lost when the other comes. */
function lostBetween(before: Conversation, after: Conversation): string | undefined {
  const affinity = createAffinity({ entries: 100, perOwner: 100 });
  const request = (conversation: Conversation) => ({ keyId: 1, model: "m", conversation, characters: 10_000 });
  affinity.remember("a", request(before));
  const turn = affinity.lastTurn(request(after), "a");
  return turn === undefined ? "unknown" : turn.lost;
}

describe("from turn to turn", () => {
  test.each([
    ["Claude Code 2.1.178", claudeCode178],
    ["Claude Code 2.1.280", claudeCode280],
    ["Claude Code 2.1.330", claudeCode330],
    ["Codex 0.169.0", codex],
  ])("%s goes on as it began", (_, { requests }) => {
    const turns = requests.map(({ body }) => read(body, { changes: ["drop_billing_line"] }));
    expect(turns.length).toBeGreaterThan(1);
    for (const [n, after] of turns.entries()) {
      const before = turns[n - 1];
      if (before !== undefined) expect([n, lostBetween(before, after)]).toEqual([n, undefined]);
    }
  });

  const long = "x".repeat(200_000);
  const turns = [user("Hello"), assistant("Hi"), user("More"), assistant("Well"), user("Thanks")];
  const body = { ...first, messages: turns };
  const next = { ...first, messages: [...turns, assistant("Bye"), user("Go on")] };

  test.each<[string, object, object, string | undefined]>([
    ["nothing changes", body, next, undefined],
    ["nothing comes on top, as when a request is repeated", body, body, undefined],
    [
      "a mark wanders",
      {
        ...body,
        messages: [user([{ type: "text", text: "Hello", cache_control: { type: "ephemeral" } }]), ...turns.slice(1)],
      },
      next,
      undefined,
    ],
    [
      "a mark wanders from a later one",
      {
        ...body,
        messages: [...turns.slice(0, 2), user([{ type: "text", text: "More", cache_control: {} }]), ...turns.slice(3)],
      },
      next,
      undefined,
    ],
    ["a tool is added", body, { ...next, tools: [{ name: "t" }, { name: "u" }] }, "tools_changed"],
    [
      "a long tool changes at its end",
      { ...body, tools: [long] },
      { ...next, tools: [`${long.slice(1)}y`] },
      "tools_changed",
    ],
    [
      "a long tool changes in its middle",
      { ...body, tools: [long] },
      { ...next, tools: [`${long.slice(0, 99_999)}${long}`] },
      "tools_changed",
    ],
    ["the system prompt says the time", body, { ...next, system: "Be brief. It is noon." }, "system_changed"],
    [
      "its billing line changes, and is sent",
      { ...body, system: "x-anthropic-billing-header: 1\nA" },
      { ...next, system: "x-anthropic-billing-header: 2\nA" },
      "system_changed",
    ],
    [
      "an earlier message is edited",
      body,
      { ...next, messages: [user("Hello"), assistant("Hi!"), ...next.messages.slice(2)] },
      "messages_changed",
    ],
    [
      "earlier messages are summed up",
      body,
      { ...next, messages: [user("Hello"), user("A summary"), user("Go on")] },
      "messages_changed",
    ],
    [
      "a result of a tool is taken out",
      {
        ...first,
        messages: [user("Hello"), user([{ type: "tool_result", content: long }]), user("More"), user("And")],
      },
      {
        ...first,
        messages: [
          user("Hello"),
          user([{ type: "tool_result", content: "" }]),
          user("More"),
          user("And"),
          user("More"),
        ],
      },
      "messages_changed",
    ],
    ["another conversation begins", body, { ...next, messages: [user("Another task")] }, "unknown"],
  ])("if %s", (_, before, after, expected) => {
    expect(lostBetween(read(before), read(after))).toBe(expected);
  });

  test("its billing line changes, and is taken out", () => {
    const turn = (line: string) =>
      read({ ...next, system: `x-anthropic-billing-header: ${line}\nA` }, { changes: ["drop_billing_line"] });
    expect(lostBetween(turn("1"), turn("2"))).toBeUndefined();
  });

  test("a prompt of Tollgate's own comes on top", () => {
    expect(lostBetween(read(body), read(next, { changes: ["system_prompt_language"] }))).toBe("system_changed");
  });

  test("agents of one session are told apart", () => {
    const headers = { "x-claude-code-session-id": "s" };
    const agent = { system: "You search.", messages: [user("Find it")] };
    expect(lostBetween(read(body, { headers }), read(agent, { headers }))).toBe("unknown");
    expect(read(agent, { headers }).name).toBe(read(body, { headers }).name ?? 0);
  });

  test("too many messages to remember tell nothing", () => {
    const messages = Array.from({ length: 5000 }, (_, n) => user(String(n)));
    expect(read({ ...first, messages }).trace).toBeUndefined();
    expect(read({ ...first, messages: messages.slice(0, 4096) }).trace?.messages).toHaveLength(64);
  });
});

describe("marks for caches cost little, however many a message has", () => {
  const bodyOf = (content: string): string =>
    `{"messages":[{"role":"user","content":${content}},{"role":"assistant","content":""}]}`;

  test.each([
    ["beside each other", "[", '{"cache_control":{}},', "0", "", "]"],
    ["inside each other, without a comma in front", "", '{"cache_control":{"}":', "0", "}}", ""],
  ])("%s", async (_, start, mark, middle, closing, end) => {
    const count = 20_000;
    const marks = bodyOf(`${start}${mark.repeat(count)}${middle}${closing.repeat(count)}${end}`);
    const find = opened(marks);
    const findOfText = opened(bodyOf(JSON.stringify("x".repeat(marks.length))));
    const tenTimes = async (act: () => unknown): Promise<void> => {
      for (let time = 0; time < 10; time += 1) act();
    };
    const [took, least] = await leastProcessorMs(
      3,
      () => tenTimes(find),
      () => tenTimes(findOfText),
    );
    expect(took / least).toBeLessThan(60);
  });
});
