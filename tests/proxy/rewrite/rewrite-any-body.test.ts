import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { isJson, jsonText, memberTexts, stringText } from "../../support/json-text.ts";
import { rewriteByValue } from "../../support/rewrite-by-value.ts";
import { familyRules, rewriteRules, type RewriteSettings, rewriterOf } from "../../support/rewrite-rules.ts";
import { rewriteText, textOf } from "../../support/rewritten.ts";

const paths = ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/v1/embeddings"];
const everyRule = rewriteRules({
  ...familyRules,
  rewriteUnknownModels: true,
  hanGuard: true,
  forceStreamUsage: "continuous",
});

const text = fc.constantFrom(
  "",
  "hello there, how are you today?",
  "请解释一下这个函数是怎么工作的。",
  "계속",
  "이 코드를 고쳐 주세요.",
  "\u0000\ud800",
);
const content = fc.oneof(
  fc.constantFrom("null", '""', "[]", "7"),
  text.map((string) => JSON.stringify(string)),
  fc
    .array(text, { maxLength: 2 })
    .map((texts) => JSON.stringify(texts.map((string) => ({ type: "text", text: string })))),
  jsonText,
);
const message = fc
  .tuple(fc.constantFrom("system", "developer", "user", "assistant", "tool"), content)
  .map(([role, given]) => `{"role":"${role}","content":${given}}`);

/** For each member that a rule reads, values that it acts on. */
const telling: Record<string, fc.Arbitrary<string>> = {
  model: fc.constantFrom('"claude-x"', '"DEEP-V4"', '"gpt[1m]"', '"x-nonthink"', '"Deep-V4-NonThinking"'),
  max_tokens: fc.constantFrom("99999", "1e5", "3", "0", '"9"', '"99999"', '"0x9"'),
  max_completion_tokens: fc.constantFrom("99999", "20000.0", "-1"),
  max_output_tokens: fc.constantFrom("12345678901234567890", "1.5"),
  thinking: fc.constantFrom(
    '{"type":"enabled","budget_tokens":99998}',
    '{"type":"enabled","budget_tokens":16383}',
    '{"budget_tokens":"20000"}',
    '{"budget_tokens":1e400}',
    '{"type":"disabled","budget_tokens":99999}',
    "7",
  ),
  stream: fc.constantFrom("true", "true", "false", "1", "0", '"Yes"', '"OFF"'),
  stream_options: fc.constantFrom(
    "{}",
    "null",
    '{"include_usage":false}',
    '{"include_usage":true}',
    '{"include_usage":true,"continuous_usage_stats":false}',
    '{"include_usage":0}',
    '{"include_usage":"T","continuous_usage_stats":null}',
    '{"include_usage":"2"}',
  ),
  chat_template_kwargs: fc.constantFrom(
    "{}",
    '{"thinking":false}',
    '{"enable_thinking":false}',
    '{"reasoning_effort":null}',
    "null",
  ),
  output_config: fc.constantFrom('{"effort":"max"}', '{"effort":"xhigh"}', '{"effort":"low"}', "7"),
  messages: fc.array(message, { maxLength: 3 }).map((messages) => `[${messages.join(" , ")}]`),
  system: content,
};
const strangers = ["seed", "tools", "__proto__", "Model", "model ", ""];
const telltale = fc
  .constantFrom(...Object.keys(telling))
  .chain((name) =>
    fc.tuple(stringText(fc.constant(name)), fc.oneof({ weight: 5, arbitrary: telling[name] ?? jsonText }, jsonText)),
  );
const stranger = fc.tuple(stringText(fc.constantFrom(...strangers)), jsonText);
const membersOfBody = fc.array(fc.oneof({ weight: 3, arbitrary: telltale }, stranger), { maxLength: 12 });

const rules: fc.Arbitrary<RewriteSettings> = fc
  .record({
    servedModel: fc.constantFrom(undefined, "Deep-V4", "Qwen"),
    rewriteUnknownModels: fc.boolean(),
    hanGuard: fc.boolean(),
    forceStreamUsage: fc.constantFrom("off", "final", "continuous"),
    maxContextTokens: fc.constantFrom(700, 202_752),
  })
  .map((chosen) => rewriteRules({ ...chosen, reasoningModel: "deep-v4" }));

describe("for any body", () => {
  const cases = fc.tuple(
    fc.constantFrom(...paths),
    rules,
    membersOfBody.chain((members) => memberTexts(members)),
  );

  test("the parsed result equals the rules applied to the parsed body", () => {
    const property = fc.property(cases, ([path, chosen, members]) => {
      const body = `{${members.join(",")}}`;
      const parsed: unknown = JSON.parse(rewriteText(path, body, chosen).body ?? body);
      // As text, to compare the order of members and those named __proto__.
      expect(JSON.stringify(parsed)).toBe(JSON.stringify(rewriteByValue(path, body, chosen)));
    });
    fc.assert(property, { numRuns: 3000 });
  });

  test("members that no rule reads keep their bytes and their order", () => {
    const property = fc.property(cases, ([path, chosen, members]) => {
      const body = rewriteText(path, `{${members.join(",")}}`, chosen).body ?? "";
      let from = 0;
      for (const member of body === "" ? [] : members) {
        const name = JSON.parse(/^\s*("(?:[^"\\]|\\.)*")/.exec(member)?.[1] ?? "") as string;
        if (!strangers.includes(name)) continue;
        // Members are added before the white space after the last member.
        const at = body.indexOf(member.trimEnd(), from);
        expect(at).toBeGreaterThanOrEqual(from);
        from = at + member.trimEnd().length;
      }
    });
    fc.assert(property, { numRuns: 1000 });
  });
});

test("none of 30,000 random texts, whole, cut or broken, makes it throw, edit what is not JSON, or remember the last", () => {
  const bodies = fc
    .sample(
      membersOfBody.chain((members) => memberTexts(members)),
      { numRuns: 300, seed: 1 },
    )
    .map((members) => `{${members.join(",")}}`);
  const random = randomIntegers(20_261_121);
  const pick = <T>(from: readonly T[], otherwise: T): T => from[random(from.length)] ?? otherwise;
  const pieces = [
    '"',
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\\",
    "\\u00",
    "null",
    "9",
    "-",
    ".",
    "e",
    " ",
    "\n",
    "\u0001",
    "\ud800",
    "漢",
    '"model":',
    '"stream":true',
  ];
  const breakings: ((body: string, at: number) => string)[] = [
    (body) => body,
    (body, at) => body.slice(0, at),
    (body, at) => body.slice(at),
    (body, at) => body.slice(0, at) + pick(pieces, "") + body.slice(at + random(3)),
    (body, at) => body.slice(0, at) + pick(bodies, "") + body.slice(at),
    () => Array.from({ length: random(30) }, () => pick(pieces, "")).join(""),
  ];
  const rewriteNext = rewriterOf(everyRule);
  let edited = 0;
  for (let run = 0; run < 30_000; run += 1) {
    const whole = pick(bodies, "{}");
    const body = pick(breakings, String)(whole, random(whole.length + 1));
    const path = pick(paths, "");
    const alone = rewriterOf(everyRule)(path, Buffer.from(body));
    if (!Bun.deepEquals(rewriteNext(path, Buffer.from(body)), alone)) {
      throw new Error(`${JSON.stringify(body)} is not rewritten as if it came alone`);
    }
    const rewritten = textOf(alone).body;
    if (rewritten === undefined) continue;
    edited += 1;
    if (!isJson(withoutBlanks(body)) || !isJson(withoutBlanks(rewritten)))
      throw new Error(`edited ${JSON.stringify(body)} into ${JSON.stringify(rewritten)}`);
  }
  expect(edited).toBeGreaterThan(3000);
});

/** Blanks that JSON does not allow may stand around it. */
const withoutBlanks = (body: string): string => body.replaceAll(/^[\s\p{Cc}]+|[\s\p{Cc}]+$/gu, "");

/** Integers under a limit, the same in every run (a linear congruential generator of Numerical Recipes). */
function randomIntegers(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 4_294_967_296) * limit);
  };
}
