import type { RewriteRules } from "../../src/proxy/rewrite/rewrite.ts";

/** An operator who set nothing, without the Han guard; tests name what they are about. */
export function rewriteRules(chosen: Partial<RewriteRules> = {}): RewriteRules {
  return {
    liveModel: undefined,
    familyModel: undefined,
    rewriteAll: false,
    vendorPrefixes: ["anthropic", "claude"],
    hanGuard: false,
    maxContextTokens: 202_752,
    maxOutputTokens: 16_384,
    forceStreamUsage: "off",
    ...chosen,
  };
}

export const familyRules = { liveModel: "Deep-V4", familyModel: "deep-v4" } as const;
