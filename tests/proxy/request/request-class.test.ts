import { describe, expect, test } from "bun:test";
import { classOfBody, classOfHeaders } from "../../../src/proxy/request/request-class.ts";
import { programOf } from "../../../src/domain/requests.ts";

const claude = "claude-cli/2.1.332";
const openCode = "opencode/1.18.33";
const codex = "Codex Desktop/0.171.0";
const turn = (kind: string, source: string): string =>
  JSON.stringify({ agent_name: "/root", request_kind: kind, thread_source: source });

describe("the class of a request that its headers tell", () => {
  test.each([
    ["Claude Code’s own", claude, { "x-claude-code-request-class": "Compaction" }, "compaction"],
    ["the same of another program", "my-agent/1", { "x-claude-code-request-class": "main" }, "main"],
    ["no short word", claude, { "x-claude-code-request-class": "two words" }, undefined],
    ["nothing", claude, { "x-claude-code-request-class": "" }, undefined],
    ["a long word", claude, { "x-claude-code-request-class": "x".repeat(41) }, undefined],
    ["no word", claude, { "x-claude-code-request-class": "<b>" }, undefined],
    ["a session that opencode’s session started", openCode, { "x-parent-session-id": "ses_1" }, "subagent"],
    ["opencode’s first session", openCode, { "x-session-id": "ses_1" }, undefined],
    ["Codex’s title", codex, { "x-codex-turn-metadata": turn("turn", "thread_title") }, "title"],
    ["Codex’s compaction", codex, { "x-codex-turn-metadata": turn("compaction", "user") }, "compaction"],
    ["Codex’s subagent", codex, { "x-codex-turn-metadata": turn("turn", "subagent") }, "subagent"],
    ["Codex’s conversation", codex, { "x-codex-turn-metadata": turn("turn", "user") }, undefined],
    [
      "what Copilot’s user asks for",
      "node",
      { "x-initiator": "user", "x-interaction-type": "conversation-panel" },
      "main",
    ],
    ["what Copilot’s agent goes on with", undefined, { "x-initiator": "agent" }, "main"],
    [
      "Copilot’s subagent",
      "node",
      { "x-initiator": "agent", "x-interaction-type": "conversation-subagent" },
      "subagent",
    ],
    ["Copilot’s own", "node", { "x-initiator": "agent", "x-interaction-type": "conversation-background" }, "auxiliary"],
    ["that header of another program", "curl/8", { "x-parent-session-id": "ses_1" }, undefined],
    ["that header of no program", undefined, { "x-parent-session-id": "ses_1" }, undefined],
  ])("%s", (_, program, headers, expected) => {
    expect(classOfHeaders(new Headers(headers as unknown as Record<string, string>), programOf(program))).toBe(
      expected,
    );
  });
});

describe("the class of a request that its body tells", () => {
  const title = "You are a title generator. You output ONLY a thread title. Nothing else.\n\n<task>";
  const summary = "You are a context summarization agent. You are given a conversation between a user and an agent.";
  const naming = "You are naming a coding session so the user can pick it out of a long list of sessions.";
  const chat = (system: string, user = "Hello") => ({
    model: "local",
    max_tokens: 16_384,
    messages: [
      { role: "system", content: system },
      { role: "user", content: user },
    ],
  });
  const messages = (system: string, user = "Hello") => ({
    model: "local",
    messages: [{ role: "user", content: [{ type: "text", text: user }] }],
    system: ["You are Claude Code, Anthropic's official CLI for Claude.", system].map((text) => ({
      type: "text",
      text,
    })),
    max_tokens: 32_000,
  });

  test.each([
    ["opencode’s title", openCode, chat(title), "title"],
    ["opencode’s title of a long question", openCode, chat(title, "a".repeat(100_000)), "title"],
    ["opencode’s compaction", openCode, chat(summary), "compaction"],
    ["opencode’s conversation", openCode, chat("You are opencode, an interactive CLI tool"), undefined],
    ["opencode’s conversation about that prompt", openCode, chat("You are opencode", `What is "${title}"?`), undefined],
    ["Claude Code’s title", claude, messages(naming), "title"],
    ["Claude Code’s conversation", claude, messages("You are an agent working with the user"), undefined],
    [
      "Claude Code’s conversation about that prompt",
      claude,
      messages("You are an agent", `What is "${naming}"?`),
      undefined,
    ],
    ["the same instructions of another program", "my-agent/1", chat(title), undefined],
    ["the same instructions of no program", undefined, chat(title), undefined],
  ])("%s", (_, program, body, expected) => {
    expect(classOfBody(Buffer.from(JSON.stringify(body)), programOf(program))).toBe(expected);
  });

  test("a body that is passed on as it comes tells nothing", () => {
    expect(classOfBody(undefined, "opencode")).toBeUndefined();
  });
});
