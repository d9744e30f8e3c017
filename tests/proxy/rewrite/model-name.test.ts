import { expect, test } from "bun:test";
import { resolveModel } from "../../../src/proxy/rewrite/model-names.ts";
import { catalogOf, rewriteRules, type RewriteSettings, rulesOf } from "../../support/rewrite-rules.ts";

function expectRows(rules: ReturnType<typeof rewriteRules>, rows: readonly [submitted: string, sent: string][]): void {
  const { names } = rulesOf(rules);
  expect(rows.map(([submitted]) => [submitted, resolveModel(submitted, names).sent])).toEqual([...rows]);
}

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
