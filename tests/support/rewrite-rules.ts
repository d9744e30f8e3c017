import type { RewriteRules } from "../../src/proxy/rewrite/rewrite.ts";

/** The default settings without the Han guard, with those that a test chooses. */
export function rewriteRules(chosen: Partial<RewriteRules> = {}): RewriteRules {
  return {
    servedModel: undefined,
    reasoningModel: undefined,
    rewriteUnknownModels: false,
    vendorPrefixes: ["anthropic", "claude"],
    hanGuard: false,
    maxContextTokens: 202_752,
    maxOutputTokens: 16_384,
    forceStreamUsage: "off",
    ...chosen,
  };
}

export const familyRules = { servedModel: "Deep-V4", reasoningModel: "deep-v4" } as const;
