import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { countCharactersInSteps, outputLimitInSteps } from "../../../src/proxy/rewrite/tokens.ts";
import type { Rewritten } from "../../../src/proxy/rewrite/rewrite.ts";
import { rewriteText } from "../../support/rewritten.ts";
import { rewriteRules, rewriterOf, type RewriteSettings } from "../../support/rewrite-rules.ts";
import { runAtOnce } from "../../support/run-at-once.ts";

type Limits = Pick<RewriteSettings, "maxContextTokens" | "maxOutputTokens">;

const outputLimit = (body: string, { maxContextTokens: contextTokens, maxOutputTokens }: Limits): number =>
  runAtOnce(outputLimitInSteps(Buffer.from(body), { contextTokens, maxOutputTokens }));

const limits = { maxContextTokens: 10_000, maxOutputTokens: 1000 };

const rewritten = (body: string, path = "/v1/chat/completions") => rewriteText(path, body, rewriteRules(limits)).body;

describe("the limit is the rest of the context, or the operator's limit if that is less", () => {
  const rows: [characters: number, expected: number][] = [
    [0, 1000],
    [25_464, 1000],
    // 10000 - 512 - 8489 leaves 999. The estimate rounds down.
    [25_466, 1000],
    [25_467, 999],
    [28_458, 2],
    [28_461, 1],
    [28_464, 1],
    [1_000_000, 1],
  ];
  test.each(rows)("%d characters leave %d", (characters, expected) => {
    expect(outputLimit("x".repeat(characters), limits)).toBe(expected);
  });

  test("with the default limits of the operator", () => {
    expect(outputLimit("x".repeat(30_000), rewriteRules())).toBe(16_384);
    expect(outputLimit("x".repeat(600_000), rewriteRules())).toBe(202_752 - 200_000 - 512);
  });
});

describe("characters are Unicode code points of the client's body", () => {
  const formula = (characters: number) => Math.max(1, Math.min(1000, 10_000 - Math.floor(characters / 3) - 512));

  test.each(["x", "é", "漢", "😀", "x漢", "a😀é"])("of %s", (unit) => {
    for (const length of [25_000, 25_498, 25_499, 25_500, 28_000, 28_461, 30_000]) {
      const body = Array.from(unit.repeat(length)).slice(0, length).join("");
      expect(outputLimit(body, limits)).toBe(formula(length));
    }
  });

  test("for any text, wherever it is in memory", () => {
    const text = fc.string({ unit: "binary" }).map((string) => string.toWellFormed());
    const property = fc.property(text, fc.nat(7), (string, offset) => {
      const bytes = Buffer.from(`${"x".repeat(offset)}${string}`).subarray(offset);
      expect(runAtOnce(countCharactersInSteps(bytes))).toBe(Array.from(string).length);
    });
    fc.assert(property, { numRuns: 500 });
    const tight = { maxContextTokens: 530, maxOutputTokens: 1000 };
    const expected = (string: string) => Math.max(1, 18 - Math.floor(Array.from(string).length / 3));
    fc.assert(fc.property(text, (string) => expect(outputLimit(string, tight)).toBe(expected(string))));
  });

  test("not of the rewritten body", () => {
    // 28,455 characters leave 3 tokens; the longer model name would leave fewer.
    const start = '{"model":"claude-x","max_tokens":9,"prompt":"';
    const body = `${start}${"x".repeat(28_455 - start.length - 2)}"}`;
    const rules = rewriteRules({ ...limits, servedModel: "a-name-that-is-much-longer-than-it-was" });
    expect(rewriteText("/v1/completions", body, rules).body).toContain('"max_tokens":3,');
  });
});

test("every duplicate is capped, however its name is written", () => {
  const body = '{"max_tokens":5000,"max_tokens":1,"max\\u005ftokens":6000,"max_completion_tokens":7000}';
  expect(rewritten(body)).toBe(
    '{"max_tokens":1000,"max_tokens":1,"max\\u005ftokens":1000,"max_completion_tokens":1000}',
  );
});

test.each(["5000", "5e3", "5000.0", "50.0E+2", "12345678901234567890", "1e400", "99999999999999999999.5"])(
  "%s is a positive integer over the cap",
  (number) => {
    expect(rewritten(`{"max_tokens":${number}}`)).toBe('{"max_tokens":1000}');
  },
);

test.each(["1", "1000", "1e3", "1000.0", "1.0"])("%s is within the cap and stays as it is", (number) => {
  expect(rewritten(`{"max_tokens":${number}}`)).toBeUndefined();
});

const noPositiveIntegers = `0|-0|-5000|5000.5|1e-3|null|true|"5000.0"|" 5000"|"+5000"|"5_000"|"-5000"|"5000."|"5000.5"|"+ 5000"|"5__000"|"_5000"|"５０００"|"5e3"|""|"0"|[5000]|{"max_tokens":5000}|NaN|Infinity|-Infinity`;

test.each(noPositiveIntegers.split("|"))("%s is not a positive integer and is left to the backend", (value) => {
  expect(rewritten(`{"max_tokens":${value}}`)).toBeUndefined();
});

describe("a string of digits", () => {
  test.each(['"5000"', '"05000"', '"5\\u0030\\u00300"', '"99999999999999999999999"', `"${"9".repeat(1000)}"`])(
    "over the cap is capped as a string: %s",
    (digits) => {
      expect(rewritten(`{"max_tokens":${digits}}`)).toBe('{"max_tokens":"1000"}');
    },
  );

  test.each(['"1000"', '"1"', '"007"'])("within the cap stays as it is: %s", (digits) => {
    expect(rewritten(`{"max_tokens":${digits}}`)).toBeUndefined();
  });
});

describe("beside a thinking budget of /v1/messages", () => {
  /** @param padding how many characters stand in the body besides; 10,000 - 512 - a third of all is left */
  const capped = (maxTokens: string, thinking: string, padding = 0): string => {
    const body = `{"max_tokens":${maxTokens},"thinking":${thinking},"x":"${"x".repeat(padding)}"}`;
    const sent = rewritten(body, "/v1/messages") ?? body;
    // The budget is forwarded as it came.
    expect(sent).toEndWith(body.slice(body.indexOf(',"thinking"')));
    return sent.slice('{"max_tokens":'.length, sent.indexOf(',"thinking"'));
  };
  const enabled = (budget: string): string => `{"type":"enabled","budget_tokens":${budget}}`;

  const rows: [what: string, maxTokens: string, thinking: string, expected: string][] = [
    ["a cap above it applies", "5000", enabled("999"), "1000"],
    ["a cap equal to it yields", "5000", enabled("1000"), "5000"],
    ["a cap below it yields", "5000", enabled("4999"), "5000"],
    ["the context's bound stays", "99999", enabled("4999"), "9443"],
    ["the context's bound is still above it", "99999", enabled("9442"), "9443"],
    ["the context's bound is equal to it", "99999", enabled("9443"), "99999"],
    ["the context's bound is below it", "99999", enabled("99998"), "99999"],
    ["the client's own limit is too low", "5000", enabled("7000"), "5000"],
    ["the client's own limit is too low for the context", "9700", enabled("9600"), "9700"],
    ["the client's own limit is within the cap", "900", enabled("4999"), "900"],
    ["a limit that is no number", "null", enabled("4999"), "null"],
    ["a limit in digits", '"99999"', enabled("4999"), '"9443"'],
    ["a budget in digits", "5000", enabled('"4999"'), "5000"],
    ["a budget with an exponent", "5000", enabled("4.999e3"), "5000"],
    ["an endless budget", "5000", enabled("1e400"), "5000"],
    ["an endless limit too", "1e400", enabled("1e400"), "1e400"],
    ["a budget with decimals", "5000", enabled("4999.5"), "1000"],
    ["a negative budget", "5000", enabled("-4999"), "1000"],
    ["no budget", "5000", '{"type":"enabled"}', "1000"],
    ["a budget of null", "5000", enabled("null"), "1000"],
    ["thinking that is off", "5000", '{"type":"disabled","budget_tokens":4999}', "1000"],
    ["thinking without a type", "5000", '{"budget_tokens":4999}', "5000"],
    ["thinking that is not an object", "5000", "[4999]", "1000"],
    ["the last of several budgets", "5000", '{"budget_tokens":4999,"type":"enabled","budget_tokens":1}', "1000"],
  ];
  test.each(rows)("%s: %s with %s is sent as %s", (_, maxTokens, thinking, expected) => {
    const length = `{"max_tokens":${maxTokens},"thinking":${thinking},"x":""}`.length;
    // Padded to the same length, so that 9443 tokens are left.
    expect(capped(maxTokens, thinking, 135 - length)).toBe(expected);
  });

  test("whatever the name of the limit, each by itself", () => {
    const body = '{"max_tokens":900,"max_tokens":5000,"max_output_tokens":99999,"thinking":{"budget_tokens":4999}}';
    expect(rewritten(body, "/v1/messages")).toBe(body.replace("99999", "9456"));
  });

  test("the last of several members counts", () => {
    const budget = '"thinking":{"budget_tokens":4999}';
    const none = '"thinking":{"type":"enabled"}';
    const body = (first: string, last: string): string => `{"max_tokens":5000,${first},${last}}`;
    expect(rewritten(body(none, budget), "/v1/messages")).toBeUndefined();
    expect(rewritten(body(budget, none), "/v1/messages")).toBe(body(budget, none).replace("5000", "1000"));
  });

  test.each(["/v1/chat/completions", "/v1/responses", "/v1/x"])("but not on %s", (path) => {
    const body = '{"max_tokens":5000,"thinking":{"type":"enabled","budget_tokens":4999}}';
    expect(rewritten(body, path)).toBe(body.replace("5000", "1000"));
  });

  test("characters are counted as for any cap", () => {
    const body = (maxTokens: number): string =>
      `{"max_tokens":${maxTokens},"thinking":{"budget_tokens":4999},"x":"${"漢".repeat(9000)}"}`;
    const available = 10_000 - 512 - Math.floor(body(9999).length / 3);
    expect(rewritten(body(9999), "/v1/messages")).toBe(body(available));
  });

  test("no more is reserved than the context may leave", () => {
    const body = '{"max_tokens":1e400,"thinking":{"budget_tokens":1e400}}';
    const { maxTokens } = rewriterOf(rewriteRules(limits))("/v1/messages", Buffer.from(body)) as Rewritten;
    expect(maxTokens).toBe(10_000 - 512);
  });
});

test("up to 64 duplicates of each name are capped, more are refused", () => {
  const names = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
  const body = (count: number) => `{${names.map((name) => `"${name}":9999,`.repeat(count)).join("")}"x":1}`;
  expect(rewritten(body(64))).toBe(body(64).replaceAll("9999", "1000"));
  expect(() => rewritten(body(65))).toThrow("too_many_duplicates");
});

test("a number of more than 64 KiB is over the cap", () => {
  const sent = (number: string) => rewriteText("/v1/x", `{"max_tokens":${number}}`, rewriteRules()).body;
  expect(sent(`1.${"0".repeat(70_000)}`)).toBe('{"max_tokens":16384}');
  expect(sent(`-1${"0".repeat(70_000)}`)).toBeUndefined();
});
