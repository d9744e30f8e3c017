import { usageAt } from "../../store/test-store.ts";
import type { UsageIncrement } from "../../../src/domain/usage.ts";

/** A request of a million input tokens and half as many output tokens. */
export const used = (keyId: number, at: number, model: string, fields: Partial<UsageIncrement> = {}): UsageIncrement =>
  usageAt(keyId, at, { inputTokens: 1_000_000, outputTokens: 500_000, model, ...fields });
