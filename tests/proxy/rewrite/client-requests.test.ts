import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { type ClientRule, type ClientRules, clientRules } from "../../../src/domain/models.ts";
import { memberTexts, stringText } from "../../support/json-text.ts";
import { type Json, list, recordings } from "../../support/recorded-requests.ts";
import { rewriterOf, rewriteRules } from "../../support/rewrite-rules.ts";
import { textOf } from "../../support/rewritten.ts";

function mended(path: string, body: string, setting: ClientRules, userAgent: string): string {
  const rewrite = rewriterOf(rewriteRules({ clientRules: setting, maxOutputTokens: 64_000 }));
  return textOf(rewrite(path, Buffer.from(body), { userAgent, enginesOf: () => ["vllm"] })).body ?? body;
}

describe.each(recordings)("$program, recorded", ({ requests }) => {
  const bodies = requests.map(({ path, userAgent, body }) => ({
    path,
    userAgent,
    body,
    text: JSON.stringify(body, null, 2),
  }));

  test("passes byte for byte with the rules off", () => {
    for (const { path, userAgent, text } of bodies) expect(mended(path, text, [], userAgent)).toBe(text);
  });

  test("keeps all but the named places with `auto`", () => {
    for (const { path, userAgent, text, body } of bodies) {
      const sent = JSON.parse(mended(path, text, "auto", userAgent)) as Json;
      const changed = Object.keys(body).filter((name) => JSON.stringify(sent[name]) !== JSON.stringify(body[name]));
      const allowed = { "/v1/messages": ["messages", "system"], "/v1/responses": ["input", "tools"] }[path] ?? [];
      expect(changed.toSorted()).toEqual(allowed);
      if (path === "/v1/messages") {
        expect(sent["system"]).toEqual(list(body["system"]).slice(1));
        expect(list(sent["messages"])).toEqual(
          list(body["messages"]).map((turn) =>
            turn["role"] === "system" ? Object.assign({}, turn, { role: "user" }) : turn,
          ),
        );
      }
    }
  });
});

test("Codex keeps its functions, those of its namespace too, under their names", () => {
  const { requests } = recordings.find(({ program }) => program.startsWith("Codex")) ?? { requests: [] };
  const [request] = requests;
  if (request === undefined) throw new Error("Nothing was recorded");
  const sent = JSON.parse(mended(request.path, JSON.stringify(request.body), "auto", request.userAgent)) as Json;
  const named = list(request.body["tools"]).flatMap((tool): Json[] =>
    tool["type"] === "namespace" ? list(tool["tools"]) : [tool],
  );
  expect(list(sent["tools"])).toEqual(named.filter(({ type }) => type === "function"));
  expect(list(sent["tools"]).map(({ name }) => name)).toContain("spawn_agent");
});

describe("for any body", () => {
  const line = "x-anthropic-billing-header: a";
  const text = fc.constantFrom(
    "",
    "A",
    "B\n\nC",
    line,
    `${line}\n`,
    `${line}\n${line}`,
    `${line}\nYou`,
    "\u0000\ud800\\n",
  );
  const role = fc.constantFrom("system", "developer", "user", "assistant", "tool", 7);
  const part = fc.record({
    type: fc.constantFrom("text", "input_text", "input_image"),
    text: fc.oneof(text, fc.constant(7)),
  });
  const content = fc.oneof(text, fc.array(part, { maxLength: 3 }), fc.constantFrom(null, 7, {}));
  const turn = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({ role, content, type: fc.constantFrom("message", "x"), id: text }, { requiredKeys: [] }),
    },
    fc.constantFrom(null, 7, []),
  );
  const name = fc.constantFrom("a", "b", "c", 7);
  const tool = fc.record({ type: fc.constantFrom("function", "web_search", 7), name }, { requiredKeys: [] });
  const namespace = fc.record({ type: fc.constant("namespace"), name, tools: fc.array(tool, { maxLength: 3 }) });
  const telling = {
    messages: fc.oneof(fc.array(turn, { maxLength: 5 }), text),
    input: fc.oneof(fc.array(turn, { maxLength: 5 }), text),
    system: content,
    tools: fc.array(fc.oneof(tool, namespace, fc.constantFrom(null, 7)), { maxLength: 5 }),
    other: turn,
  };
  const names = ["messages", "input", "system", "tools", "other"] as const;
  const member = fc.constantFrom(...names).chain((given) =>
    fc.tuple(
      stringText(fc.constant<string>(given)),
      telling[given].map((value) => JSON.stringify(value, null, 1)),
    ),
  );
  const body = fc
    .array(member, { maxLength: 6 })
    .chain((members) => memberTexts(members))
    .map((members) => `{${members.join(",")}}`);
  const path = fc.constantFrom("/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/completions");
  const edit = (given: string, to: string, rules: readonly ClientRule[]): string => mended(to, given, rules, "any");

  test("each rule leaves valid JSON, changes nothing in its own result, and only its own member", () => {
    const places: Record<ClientRule, string[]> = {
      system_turns_to_user: ["messages"],
      drop_billing_line: ["system"],
      developer_to_system: ["messages", "input"],
      function_tools_only: ["tools"],
      full_context_code: [],
    };
    const property = fc.property(body, path, fc.constantFrom(...clientRules), (given, to, rule) => {
      const sent = edit(given, to, [rule]);
      expect(edit(sent, to, [rule])).toBe(sent);
      const [before, after] = [JSON.parse(given) as Json, JSON.parse(sent) as Json];
      expect(Object.keys(after)).toEqual(Object.keys(before));
      for (const key of Object.keys(before)) if (!places[rule].includes(key)) expect(after[key]).toEqual(before[key]);
    });
    fc.assert(property, { numRuns: 800 });
  });

  test("all together make what they make one after the other", () => {
    const property = fc.property(body, path, (given, to) => {
      let sent = given;
      for (const rule of clientRules) sent = edit(sent, to, [rule]);
      expect(JSON.parse(edit(given, to, clientRules))).toEqual(JSON.parse(sent));
    });
    fc.assert(property, { numRuns: 300 });
  });

  test("the prefixes join them in valid JSON", () => {
    const guard = rewriterOf(rewriteRules({ hanGuard: true, clientRules, servedModel: "d", reasoningModel: "d" }));
    const property = fc.property(body, path, (given, to) => {
      const bytes = Buffer.from(given.replace(/\}$/, `${given === "{}" ? "" : ","}"output_config":{"effort":"max"}}`));
      const sent = textOf(guard(to, bytes)).body;
      if (sent !== undefined) JSON.parse(sent);
    });
    fc.assert(property, { numRuns: 800 });
  });
});
