import type { UsageSum } from "../../domain/usage.ts";

interface SumFields {
  request_count: number;
  input_tokens: number;
  output_tokens: number;
}

/** A sum as the API names its fields. */
export const sumFields = ({ requestCount, inputTokens, outputTokens }: UsageSum): SumFields => ({
  request_count: requestCount,
  input_tokens: inputTokens,
  output_tokens: outputTokens,
});

/** Sums as columns, one array for each field: a fraction of the bytes of an object for each sum. */
export const columnsOf = (sums: readonly UsageSum[]): { [Field in keyof SumFields]: number[] } => ({
  request_count: sums.map(({ requestCount }) => requestCount),
  input_tokens: sums.map(({ inputTokens }) => inputTokens),
  output_tokens: sums.map(({ outputTokens }) => outputTokens),
});
