import { describe, expect, test } from "bun:test";
import { rewriteText } from "../../support/rewritten.ts";
import { hanGuardPrefix, maximumEffortPrefix } from "../../../src/proxy/rewrite/system-prefix.ts";
import { familyRules, rewriteRules, type RewriteSettings } from "../../support/rewrite-rules.ts";

const chat = "/v1/chat/completions";
const messages = "/v1/messages";
const english = "Please explain how a binary search works, step by step.";
const chinese = "请一步一步地解释二分查找是如何工作的。";

const guarded = rewriteRules({ hanGuard: true });
const user = (text = english) => `{"role":"user","content":"${text}"}`;
const escaped = (text: string) => JSON.stringify(text).slice(1, -1);
const sent = (path: string, body: string, rules: RewriteSettings = guarded) => rewriteText(path, body, rules).body;

describe("the prefix of a chat completions body", () => {
  const withMessages = (list: string) => sent(chat, `{"messages":${list}}`);
  const guard = escaped(hanGuardPrefix);

  const rows: [given: string, expected: string][] = [
    [`[ ${user()}]`, `[{"role":"system","content":"${guard}"}, ${user()}]`],
    [
      `[{"role":"system","content":"Be \\u0062rief."},${user()}]`,
      `[{"role":"system","content":"${guard}\\n\\nBe \\u0062rief."},${user()}]`,
    ],
    [
      `[{"content" : "Be brief.", "role":"developer"},${user()}]`,
      `[{"content" : "${guard}\\n\\nBe brief.", "role":"developer"},${user()}]`,
    ],
    [`[{"role":"system","content":""},${user()}]`, `[{"role":"system","content":"${guard}"},${user()}]`],
    [`[{"role":"system","content":null},${user()}]`, `[{"role":"system","content":"${guard}"},${user()}]`],
    [`[{"role":"system"},${user()}]`, `[{"role":"system","content":"${guard}"},${user()}]`],
    [
      `[{"role":"system","content":[]},${user()}]`,
      `[{"role":"system","content":[{"type":"text","text":"${guard}\\n\\n"}]},${user()}]`,
    ],
    [
      `[{"role":"system","content":[ {"type":"text","text":"A","cache_control":{"type":"ephemeral"}}]},${user()}]`,
      `[{"role":"system","content":[{"type":"text","text":"${guard}\\n\\n"}, {"type":"text","text":"A","cache_control":{"type":"ephemeral"}}]},${user()}]`,
    ],
    // A system message after the first is not a leading one.
    [
      `[${user()},{"role":"system","content":"A"}]`,
      `[{"role":"system","content":"${guard}"},${user()},{"role":"system","content":"A"}]`,
    ],
    // Backends read the last of duplicate contents.
    [
      `[{"role":"system","content":"A","content":"B"},${user()}]`,
      `[{"role":"system","content":"A","content":"${guard}\\n\\nB"},${user()}]`,
    ],
  ];
  test.each(rows)("of %s", (given, expected) => {
    expect(withMessages(given)).toBe(`{"messages":${expected}}`);
  });

  test.each(["[]", "{}", "null", '"hello"', "7"])("is not added if messages are %s", (list) => {
    expect(withMessages(list)).toBeUndefined();
  });

  test("is not added to a system content that is not text", () => {
    expect(withMessages(`[{"role":"system","content":7},${user()}]`)).toBeUndefined();
  });

  test("does not change a member system, which belongs to another API", () => {
    expect(sent(chat, `{"system":"A","messages":[${user()}]}`)).toStartWith(
      '{"system":"A","messages":[{"role":"system"',
    );
  });
});

describe("the prefix of a messages body", () => {
  const guard = escaped(hanGuardPrefix);
  const conversation = `"messages":[${user()}]`;

  const rows: [given: string, expected: string][] = [
    [`{${conversation}}`, `{${conversation},"system":"${guard}"}`],
    [`{"system":"A\\t",${conversation}}`, `{"system":"${guard}\\n\\nA\\t",${conversation}}`],
    [`{"system":"",${conversation}}`, `{"system":"${guard}",${conversation}}`],
    [`{"system":null,${conversation}}`, `{"system":"${guard}",${conversation}}`],
    [
      `{"system":[{"type":"text","text":"A","cache_control":{"type":"ephemeral"}}, {"x":1}],${conversation}}`,
      `{"system":[{"type":"text","text":"${guard}\\n\\n"},{"type":"text","text":"A","cache_control":{"type":"ephemeral"}}, {"x":1}],${conversation}}`,
    ],
  ];
  test.each(rows)("of %s", (given, expected) => {
    expect(sent(messages, given)).toBe(expected);
  });

  test.each(["7", "{}", "true"])("is not added to a system of %s", (system) => {
    expect(sent(messages, `{"system":${system},${conversation}}`)).toBeUndefined();
  });

  test("is not added to a body without messages", () => {
    expect(sent(messages, '{"system":"A"}')).toBeUndefined();
    expect(sent(messages, '{"system":"A","messages":[]}')).toBeUndefined();
  });
});

describe("the Han guard", () => {
  test.each([chat, messages])("is not added on %s to a conversation in Chinese", (path) => {
    expect(sent(path, `{"messages":[${user(chinese)}]}`)).toBeUndefined();
  });

  test.each([chat, messages])("is not added on %s if it is off", (path) => {
    expect(sent(path, `{"messages":[${user()}]}`, rewriteRules({ hanGuard: false }))).toBeUndefined();
  });

  test.each(["/v1/completions", "/v1/responses", "/v1/embeddings", "/v1/messages/count_tokens"])(
    "is not added on %s",
    (path) => {
      expect(sent(path, `{"messages":[${user()}],"input":"${english}","prompt":"${english}"}`)).toBeUndefined();
    },
  );
});

describe("the maximum effort prefix", () => {
  const live = rewriteRules(familyRules);
  const effort = (level: string) => `"output_config":{"effort":"${level}"}`;
  const hasPrefix = (path: string, members: string, rules = live) =>
    sent(path, `{${members},"messages":[${user()}]}`, rules)?.includes(maximumEffortPrefix) === true;

  test.each([chat, messages])("is added on %s for max and xhigh only", (path) => {
    const levels = ["max", "xhigh", "high", "medium", "low", "Max", ""];
    expect(levels.filter((level) => hasPrefix(path, effort(level)))).toEqual(["max", "xhigh"]);
  });

  test.each([chat, messages])("is not added on %s for a non-thinking name", (path) => {
    expect(hasPrefix(path, `"model":"deep-v4-nonthinking",${effort("max")}`)).toBe(false);
  });

  test.each([chat, messages])("is not added on %s if the client turned thinking off", (path) => {
    expect(hasPrefix(path, `"chat_template_kwargs":{"thinking":false},${effort("max")}`)).toBe(false);
    expect(hasPrefix(path, `"chat_template_kwargs":{"enable_thinking":false},${effort("max")}`)).toBe(false);
    expect(hasPrefix(path, `"chat_template_kwargs":{"enable_thinking":false,"thinking":true},${effort("max")}`)).toBe(
      true,
    );
    expect(hasPrefix(path, `"chat_template_kwargs":null,${effort("max")}`)).toBe(true);
  });

  test.each([chat, messages])("is not added on %s if the family is not live", (path) => {
    expect(hasPrefix(path, effort("max"), rewriteRules({ ...familyRules, servedModel: "Qwen" }))).toBe(false);
  });

  test("is not added on responses and completions", () => {
    for (const path of ["/v1/responses", "/v1/completions"]) expect(hasPrefix(path, effort("max"))).toBe(false);
  });

  test("is in the first message, before the guard and the client's own text", () => {
    const rules = { ...live, hanGuard: true };
    const first = (list: string) => {
      const body = sent(chat, `{${effort("max")},"messages":${list}}`, rules) ?? "";
      return (JSON.parse(body) as { messages: unknown[] }).messages[0];
    };
    const prefixes = `${maximumEffortPrefix}\n\n${hanGuardPrefix}`;
    expect(first(`[${user()}]`)).toEqual({ role: "system", content: prefixes });
    expect(first(`[{"role":"system","content":"Mine."},${user()}]`)).toEqual({
      role: "system",
      content: `${prefixes}\n\nMine.`,
    });
    expect(first(`[{"role":"system","content":[{"type":"text","text":"Mine."}]},${user()}]`)).toEqual({
      role: "system",
      content: [
        { type: "text", text: `${prefixes}\n\n` },
        { type: "text", text: "Mine." },
      ],
    });
  });
});
