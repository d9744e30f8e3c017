import { findCached, type Generation, usageOf } from "../generation.ts";

/** The `usage` of chat completions and completions as JSON text, by default for all output tokens. */
export function openAiUsage(generation: Generation, tokensSoFar?: number): string {
  const usage = usageOf(generation);
  const { inputTokens } = usage;
  const outputTokens = tokensSoFar ?? usage.outputTokens;
  const cached = findCached(usage);
  const details = cached === undefined ? "" : `,"prompt_tokens_details":{"cached_tokens":${cached}}`;
  return `{"prompt_tokens":${inputTokens},"total_tokens":${inputTokens + outputTokens},"completion_tokens":${outputTokens}${details}}`;
}

/** The `usage` member of a whole body, if it has one. */
export function usageMember(generation: Generation): { usage?: unknown } {
  if (generation.usageMode === "none") return {};
  return { usage: generation.usageMode === "null" ? null : JSON.parse(openAiUsage(generation)) };
}
