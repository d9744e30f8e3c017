import type { UsageSum } from "../../domain/usage.ts";
import type { SumColumns } from "./contract.ts";

export const columnsOf = (sums: readonly UsageSum[]): SumColumns => ({
  requestCount: sums.map(({ requestCount }) => requestCount),
  inputTokens: sums.map(({ inputTokens }) => inputTokens),
  outputTokens: sums.map(({ outputTokens }) => outputTokens),
});
