import { describe, expect, test } from "bun:test";
import { resolveModel } from "../../../src/proxy/rewrite/model-names.ts";
import { catalogOf, familyRules, rewriteRules, type RewriteSettings, rulesOf } from "../../support/rewrite-rules.ts";

type Row = [submitted: string, expected: string, nonThinking?: "non-think"];

function expectRows(rules: ReturnType<typeof rewriteRules>, rows: readonly Row[]): void {
  const { names } = rulesOf(rules);
  const actual = rows.map(([submitted]): Row => {
    const { sent, nonThinking } = resolveModel(submitted, names);
    return nonThinking ? [submitted, sent, "non-think"] : [submitted, sent];
  });
  expect(actual).toEqual([...rows]);
}

const unchanged = (names: readonly string[]): Row[] => names.map((name) => [name, name]);

describe("with no live model", () => {
  test("no name changes", () => {
    const names = ["deep-v4", "Deep-V4-nonthinking", "claude-opus-4", "anthropic-x", "gpt-4o", "x[1m]", ""];
    expectRows(rewriteRules({ reasoningModel: "deep-v4", rewriteUnknownModels: true }), unchanged(names));
  });
});

describe("with the family live and rewrite-all off", () => {
  const rules = rewriteRules(familyRules);

  test("the live model's name in any case becomes its canonical spelling", () => {
    expectRows(rules, [
      ["Deep-V4", "Deep-V4"],
      ["DEEP-V4", "Deep-V4"],
      ["deep-v4", "Deep-V4"],
      ["deep-v4[1M][1m]", "Deep-V4"],
    ]);
  });

  test("a name that ends in -nonthinking or -nonthink becomes the canonical one without thinking", () => {
    const names = [
      "deep-v4-nonthinking",
      "DEEP-v4-NonThinking",
      "gpt-4o-nonthink",
      "claude-x-NONTHINK",
      "deep-v4-nonthinking[1m]",
    ];
    expectRows(
      rules,
      names.map((name): Row => [name, "Deep-V4", "non-think"]),
    );
  });

  test("a vendor's name becomes the live model", () => {
    expectRows(rules, [
      ["claude-opus-4-1", "Deep-V4"],
      ["ANTHROPIC-large", "Deep-V4"],
      ["Claude-3[1m]", "Deep-V4"],
    ]);
  });

  test("any other name does not change, with its mark", () => {
    const names = [
      "gpt-4o",
      "Gpt-4o[1m]",
      "claude",
      "claudette-1",
      "my-claude-1",
      "anthropic/claude-3",
      "deep-v4-nonthinkin",
      "nonthinking",
      "deep-v4 ",
      "",
    ];
    expectRows(rules, unchanged(names));
  });
});

test("with the family live and rewrite-all on, every other name becomes the live model", () => {
  const rules = rewriteRules({ ...familyRules, rewriteUnknownModels: true });
  expectRows(rules, [
    ["gpt-4o", "Deep-V4"],
    ["", "Deep-V4"],
    ["retired[1m]", "Deep-V4"],
    ["gpt-nonthink", "Deep-V4", "non-think"],
    ["claude-x", "Deep-V4"],
  ]);
});

describe("with another model live than the family's", () => {
  const names = ["deep-v4", "deep-v4-nonthinking", "gpt-4o-nonthink"];

  test("the family's names and suffixes mean nothing and do not change", () => {
    expectRows(rewriteRules({ ...familyRules, servedModel: "Qwen" }), unchanged(names));
  });

  test("they become the live model if everything is rewritten, with thinking", () => {
    const rules = rewriteRules({ ...familyRules, servedModel: "Qwen", rewriteUnknownModels: true });
    expectRows(
      rules,
      names.map((name): Row => [name, "Qwen"]),
    );
  });

  test("a vendor's name with a suffix is still a vendor's name", () => {
    expectRows(rewriteRules({ ...familyRules, servedModel: "Qwen" }), [["claude-x-nonthinking", "Qwen"]]);
  });
});

test("vendor prefixes match in any case; an empty list matches nothing", () => {
  expectRows(rewriteRules({ servedModel: "Qwen", vendorPrefixes: ["ACME"] }), [
    ["acme-1", "Qwen"],
    ["claude-1", "claude-1"],
  ]);
  expectRows(rewriteRules({ servedModel: "Qwen", vendorPrefixes: [] }), [["-x", "-x"]]);
});

const isReasoning = (chosen: Partial<RewriteSettings>): boolean =>
  catalogOf(rewriteRules(chosen)).otherModels.reasoning;

test("the family is live if and only if the live model is its canonical one, in any case", () => {
  expect(isReasoning({ servedModel: "Deep-V4", reasoningModel: "deep-v4" })).toBe(true);
  expect(isReasoning({ servedModel: "Deep-V4-mini", reasoningModel: "deep-v4" })).toBe(false);
  expect(isReasoning({ servedModel: undefined, reasoningModel: "deep-v4" })).toBe(false);
  expect(isReasoning({ servedModel: "Deep-V4", reasoningModel: undefined })).toBe(false);
});

test("a name of a million marks takes linear time", () => {
  const marks = "[1m]".repeat(250_000);
  const { names } = rulesOf(rewriteRules({ servedModel: "Qwen" }));
  expect(resolveModel(`qwen${marks}`, names).name).toBe("Qwen");
  expect(resolveModel(`${marks}x`, names).name).toBe(`${marks}x`);
});

test("a live model that ends in the mark keeps it", () => {
  expectRows(rewriteRules({ servedModel: "Deep-V4[1M]" }), [
    ["deep-v4[1m]", "Deep-V4[1M]"],
    ["deep-v4", "Deep-V4[1M]"],
  ]);
});
