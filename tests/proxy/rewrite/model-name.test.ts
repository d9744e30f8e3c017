import { expect, test } from "bun:test";
import { resolveModel } from "../../../src/proxy/rewrite/model-names.ts";
import { rewriteRules, rulesOf } from "../../support/rewrite-rules.ts";

function expectRows(rules: ReturnType<typeof rewriteRules>, rows: readonly [submitted: string, sent: string][]): void {
  const { names } = rulesOf(rules);
  expect(rows.map(([submitted]) => [submitted, resolveModel(submitted, names).sent])).toEqual([...rows]);
}

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
