import { describe, expect, test } from "bun:test";
import { type ClientRule, clientRules } from "../../../src/domain/models.ts";
import { chooseClientRules } from "../../../src/proxy/rewrite/client-rules.ts";
import { hanGuardPrefix } from "../../../src/proxy/rewrite/rewrite.ts";
import { rewriterOf, rewriteRules } from "../../support/rewrite-rules.ts";
import { rewriteText } from "../../support/rewritten.ts";

const chat = "/v1/chat/completions";
const messages = "/v1/messages";
const responses = "/v1/responses";

/** The body after a rule; itself if the rule changes nothing. */
const mended = (rule: ClientRule, path: string, body: string): string =>
  rewriteText(path, body, rewriteRules({ clientRules: [rule] })).body ?? body;

describe("system_turns_to_user", () => {
  const turn = (role: string): string => `{"role": "${role}", "content":"c"}`;
  const body = (roles: string): string => `{"messages":[ ${(roles.match(/\w+/g) ?? []).map(turn).join(" , ")} ]}`;
  test.each([
    ["user system assistant system", "user user assistant user"],
    ["system developer system user system", "system developer system user user"],
    ["tool developer user", "tool developer user"],
    ["system", "system"],
    ["", ""],
  ])("turns the roles %j into %j", (given, sent) => {
    for (const path of [chat, messages]) {
      expect(mended("system_turns_to_user", path, body(given))).toBe(body(sent));
    }
  });

  test.each([
    [
      '{"messages":[{"role":"user"},{"r\\u006fle":"syst\\u0065m"}]}',
      '{"messages":[{"role":"user"},{"r\\u006fle":"user"}]}',
    ],
    ['{"messages":[7,{"role":"system"}]}', '{"messages":[7,{"role":"user"}]}'],
    [
      '{"messages":[{"role":"user"},{"role":"system","role":"assistant"}]}',
      '{"messages":[{"role":"user"},{"role":"system","role":"assistant"}]}',
    ],
    [
      '{"messages":[{"role":"user"},{"role":"system"}],"messages":[{"role":"user"},{"role":"system"}]}',
      '{"messages":[{"role":"user"},{"role":"system"}],"messages":[{"role":"user"},{"role":"user"}]}',
    ],
    ['{"messages":{"role":"system"}}', '{"messages":{"role":"system"}}'],
    [
      '{"x":{"messages":[{"role":"user"},{"role":"system"}]}}',
      '{"x":{"messages":[{"role":"user"},{"role":"system"}]}}',
    ],
  ])("reads what backends read: %s", (given, sent) => {
    expect(mended("system_turns_to_user", messages, given)).toBe(sent);
  });
});

describe("drop_billing_line", () => {
  const line = "x-anthropic-billing-header: cc_version=2.1.330.930; cc_entrypoint=cli;";
  const block = (text: string): string => `{"type":"text", "text":"${text}"}`;
  test.each([
    [`"${line}"`, '""'],
    [`"${line}\\nYou are"`, '"You are"'],
    [`"${line}\\u000AYou are"`, '"You are"'],
    [`"${line}\\n${line}\\n"`, '""'],
    [`"x-anthropic-billing-header: a\\\\nb\\nYou"`, '"You"'],
    [`[ ${block(line)} , ${block("You are")} ]`, `[ ${block("You are")} ]`],
    [`[${block(line)},${block(`${line}\\nYou`)},${block(line)}]`, `[${block("You")},${block(line)}]`],
    [`[ ${block(line)} ]`, "[]"],
    [`[${block(`${line}\\nYou`)}]`, `[${block("You")}]`],
    [`[${block("You")},${block(line)}]`, `[${block("You")},${block(line)}]`],
    [`[{"type":"image","text":"${line}"}]`, `[{"type":"image","text":"${line}"}]`],
    [`"You ${line}"`, `"You ${line}"`],
    [`"x-anthropic-billing-header"`, `"x-anthropic-billing-header"`],
    [`"${line}${"a".repeat(9000)}"`, `"${line}${"a".repeat(9000)}"`],
    ["null", "null"],
    ["[]", "[]"],
    ["7", "7"],
  ])("turns the system prompt %s into %s", (given, sent) => {
    expect(mended("drop_billing_line", messages, `{"system":${given},"a":1}`)).toBe(`{"system":${sent},"a":1}`);
  });
});

describe("developer_to_system", () => {
  const parts = (...texts: string[]): string =>
    `[${texts.map((text) => `{"type":"input_text","text":"${text}"}`).join(", ")}]`;
  const item = (role: string, content: string): string =>
    `{"type":"message","id":"m","role":"${role}","content":${content}}`;
  const joined = (text: string): string => `{"type":"message","role":"system","content":"${text}"}`;
  const user = item("user", parts("Hi"));
  test.each([
    [[item("developer", parts("A"))], [item("system", parts("A"))]],
    [[item("system", parts("A"))], [item("system", parts("A"))]],
    [
      [item("developer", parts("A \\u0041\\n")), item("developer", parts("B", "", "C"))],
      [joined("A \\u0041\\n\\n\\nB\\n\\nC")],
    ],
    [[item("system", '"A"'), item("developer", "null"), '{"content":"B","role":"developer"}'], [joined("A\\n\\nB")]],
    [[item("developer", '[{"type":"input_image"}]')], [item("system", '[{"type":"input_image"}]')]],
  ])("turns the head %j into %j", (given, sent) => {
    const body = (items: string[]): string =>
      `{"input": [ ${[...items, user, item("developer", '"later"')].join(" ,\n")} ]}`;
    expect(mended("developer_to_system", responses, body(given))).toBe(body(sent));
  });

  test.each([
    [item("developer", '[{"type":"input_image"}]'), item("developer", parts("B"))],
    [item("developer", parts("A")), item("developer", "7")],
    [item("developer", '""'), item("developer", "[]")],
    ['{"type":"function_call","role":"developer"}'],
  ])("leaves a run alone that is more than texts: %s", (...items) => {
    const body = `{"input":[${items.join(",")}]}`;
    expect(mended("developer_to_system", responses, body)).toBe(body);
  });

  test("leaves a run of more texts than any client sends alone", () => {
    const body = `{"input":[${Array.from({ length: 257 }, () => item("developer", '"A"')).join(",")}]}`;
    expect(mended("developer_to_system", responses, body)).toBe(body);
  });

  test("writes messages of chat as chat has them", () => {
    const body =
      '{"messages":[{"role":"system","content":"A"},{"role":"developer","content":"B"},{"role":"user","content":"Hi"}]}';
    expect(mended("developer_to_system", chat, body)).toBe(
      '{"messages":[{"role":"system","content":"A\\n\\nB"},{"role":"user","content":"Hi"}]}',
    );
  });
});

describe("function_tools_only", () => {
  const fn = (name: string): string => `{"type":"function", "name":"${name}"}`;
  const namespace = (...tools: string[]): string =>
    `{"type":"namespace","name":"n","tools":[ ${tools.join(" ,  ")} ],"x":1}`;
  const search = '{"type":"web_search"}';
  test.each([
    [[fn("a"), fn("b")], `${fn("a")} , ${fn("b")}`],
    [[fn("a"), search], fn("a")],
    [[search, fn("a"), fn("b")], `${fn("a")} , ${fn("b")}`],
    [[fn("a"), search, fn("b")], `${fn("a")},${fn("b")}`],
    [[search], ""],
    [[fn("a"), namespace(fn("b"), fn("c")), search, fn("d")], `${fn("a")},${fn("b")} ,  ${fn("c")},${fn("d")}`],
    [[namespace(fn("a"), search, fn("b"))], `${fn("a")},${fn("b")}`],
    // Two tools of one name: none of the namespace's may stand for the other.
    [[fn("a"), namespace(fn("a"), fn("b"))], `${fn("a")},${fn("b")}`],
    [[namespace(fn("a")), namespace(fn("\\u0061"), fn("b"))], fn("b")],
    [[namespace(namespace(fn("a")))], ""],
    [[namespace('{"type":"function"}')], ""],
    // For the backend to judge.
    [["7", '{"name":"a"}', search], '7 , {"name":"a"}'],
  ])("turns the tools %j into %s", (given, sent) => {
    const list = (tools: string): unknown => JSON.parse(`{"tools":[${tools}]}`);
    const body = mended("function_tools_only", responses, `{"tools":[ ${given.join(" , ")} ]}`);
    expect(JSON.parse(body)).toEqual(list(sent));
  });

  test("changes no byte of a list of functions", () => {
    const body = `{"tools":[ ${fn("a")} , {"type": "function", "name": "b", "x": 1.0} ]}`;
    expect(mended("function_tools_only", responses, body)).toBe(body);
  });

  test("leaves a list of tools alone that is longer than any client sends", async () => {
    const body = `{"tools":[${search},${fn("a".repeat(256 * 1024))}]}`;
    const rewrite = rewriterOf(rewriteRules({ clientRules: ["function_tools_only"] }));
    expect(await rewrite(responses, Buffer.from(body))).toMatchObject({ pieces: undefined });
  });
});

describe("with the other rules", () => {
  const guarded = (path: string, body: string): unknown =>
    JSON.parse(rewriteText(path, body, rewriteRules({ hanGuard: true, clientRules })).body ?? body);
  const line = "x-anthropic-billing-header: a";
  const user = { role: "user", content: "Why is the sky blue, and the sunset red?" };
  const text = (content: string): object => ({ type: "text", text: content });

  test.each([
    [line, hanGuardPrefix],
    [`${line}\nYou`, `${hanGuardPrefix}\n\nYou`],
    [[text(line)], [text(`${hanGuardPrefix}\n\n`)]],
    [
      [text(line), text("You")],
      [text(`${hanGuardPrefix}\n\n`), text("You")],
    ],
    [[text(`${line}\nYou`)], [text(`${hanGuardPrefix}\n\n`), text("You")]],
    [undefined, hanGuardPrefix],
  ])("the prefix stands where the billing line was: %j", (system, sent) => {
    const body = JSON.stringify({ system, messages: [user, { role: "system", content: "s" }] });
    expect(guarded(messages, body)).toEqual({ system: sent, messages: [user, { role: "user", content: "s" }] });
  });

  test.each([
    [["A"], `${hanGuardPrefix}\n\nA`],
    [["A", "B"], `${hanGuardPrefix}\n\nA\n\nB`],
    [[[text("A")], "B"], `${hanGuardPrefix}\n\nA\n\nB`],
    [[[text("A")]], [text(`${hanGuardPrefix}\n\n`), text("A")]],
  ])("the prefix heads the texts %j of developer messages", (contents, sent) => {
    const run = contents.map((content) => ({ role: "developer", content }));
    const body = JSON.stringify({ messages: [...run, user] });
    expect(guarded(chat, body)).toEqual({ messages: [{ role: "system", content: sent }, user] });
  });
});

test("the changes name the rules that changed something", async () => {
  const rewrite = rewriterOf(rewriteRules({ clientRules }));
  const body = '{"messages":[{"role":"user"},{"role":"system"}],"system":"You"}';
  expect(await rewrite(messages, Buffer.from(body))).toMatchObject({ changes: { kinds: ["system_turns_to_user"] } });
  expect(await rewrite(messages, Buffer.from('{"system":"You"}'))).toMatchObject({ changes: undefined });
});

describe("auto", () => {
  const claude = "claude-cli/2.1.330 (external, cli)";
  test.each([
    [claude, ["vllm"], ["drop_billing_line", "system_turns_to_user"]],
    ["claude-cli/2.1.154 (external, cli)", ["ollama"], ["drop_billing_line", "system_turns_to_user"]],
    ["Claude-CLI/2.0.900", ["ollama"], ["drop_billing_line", "system_turns_to_user"]],
    ["claude-client/2.1.330", ["ollama"], []],
    ["claude-cli", ["ollama"], []],
    [claude, [], []],
    [
      "codex_exec/0.169.0 (Debian 12.0.0; x86_64)",
      ["llama.cpp"],
      ["developer_to_system", "function_tools_only", "full_context_code"],
    ],
    ["codex_vscode/0.153.0 (Windows 10.0.26100; x86_64)", ["ollama"], ["developer_to_system", "full_context_code"]],
    ["Codex Desktop/0.171.0 (Mac OS 26.1.0; arm64)", ["ollama"], ["developer_to_system", "full_context_code"]],
    ["codexbar/0.171.0", ["ollama"], []],
    ["my-codex/0.171.0", ["ollama"], []],
    ["codex_cli_rs/1.0.0", ["ollama", "vllm"], ["developer_to_system", "function_tools_only", "full_context_code"]],
    ["opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14", ["vllm"], ["full_context_code"]],
    ["codex_cli_rs/1.0.0", [], ["full_context_code"]],
    [null, ["vllm"], []],
  ] as const)("for %s in front of %j: %j", (userAgent, engines, rules) => {
    expect(chooseClientRules("auto", { userAgent, enginesOf: () => engines }, [])).toEqual([...rules]);
  });

  test("a list holds for every client, and none for one that nothing is known of", () => {
    expect(chooseClientRules(["drop_billing_line"], undefined, [])).toEqual(["drop_billing_line"]);
    expect(chooseClientRules("auto", undefined, [])).toEqual([]);
  });
});
