import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { runAtOnce } from "../../../src/proxy/json/steps.ts";
import { type CapRules, countCharactersInSteps, outputLimitInSteps } from "../../../src/proxy/rewrite/caps.ts";
import { rewriteText } from "../../support/rewritten.ts";
import { rewriteRules } from "../../support/rewrite-rules.ts";

const outputLimit = (body: string, rules: CapRules): number => runAtOnce(outputLimitInSteps(Buffer.from(body), rules));

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

test.each(["max_tokens", "max_completion_tokens", "max_output_tokens"])(
  "%s is capped in place, on any path",
  (name) => {
    for (const path of [
      "/v1/chat/completions",
      "/v1/completions",
      "/v1/messages",
      "/v1/responses",
      "/v1/anything/else",
    ]) {
      expect(rewritten(`{ "${name}" : 99999 ,"seed":1.0}`, path)).toBe(`{ "${name}" : 1000 ,"seed":1.0}`);
    }
  },
);

test("a missing field is not added", () => {
  expect(rewritten('{"prompt":"x"}')).toBeUndefined();
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

test.each([
  "0",
  "-0",
  "-5000",
  "5000.5",
  "1e-3",
  "null",
  "true",
  '"5000.0"',
  '" 5000"',
  '"+5000"',
  '"5e3"',
  '""',
  '"0"',
  "[5000]",
  '{"max_tokens":5000}',
  "NaN",
  "Infinity",
  "-Infinity",
])("%s is not a positive integer and is left to the backend", (value) => {
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

test("a nested max_tokens is not capped", () => {
  expect(rewritten('{"x":{"max_tokens":99999},"y":[{"max_tokens":99999}]}')).toBeUndefined();
});

test("a body with NaN is capped like any other", () => {
  expect(rewritten('{"temperature":NaN,"max_tokens":5000}')).toBe('{"temperature":NaN,"max_tokens":1000}');
});
