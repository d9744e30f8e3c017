import { type Job, usageOf } from "../answer.ts";

/** The `usage` of chat completions and completions as JSON text, after so many output tokens: at the end, where left out. */
export function openAiUsage(job: Job, tokensSoFar?: number): string {
  const { inputTokens, outputTokens: total } = usageOf(job);
  const outputTokens = tokensSoFar ?? total;
  return `{"prompt_tokens":${inputTokens},"total_tokens":${inputTokens + outputTokens},"completion_tokens":${outputTokens}}`;
}

/** What a whole body says about usage: the member, or none. */
export function usageMember(job: Job): { usage?: unknown } {
  if (job.usageMode === "none") return {};
  return { usage: job.usageMode === "null" ? null : JSON.parse(openAiUsage(job)) };
}
