import { msPerMinute } from "../../../src/time/seoul.ts";
import type { UsageIncrement } from "../../../src/domain/usage.ts";

/** A request of a million input tokens and half as many output tokens. */
export const used = (
  keyId: number,
  at: number,
  model: string,
  fields: Partial<UsageIncrement> = {},
): UsageIncrement => ({
  keyId,
  minute: Math.floor(at / msPerMinute),
  lastClosedAt: at,
  requestCount: 1,
  inputTokens: 1_000_000,
  outputTokens: 500_000,
  model,
  ...fields,
});
