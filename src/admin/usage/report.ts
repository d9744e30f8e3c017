import type { UsageSum } from "../../domain/usage.ts";
import type { Report } from "../../store/reports/contract.ts";

/** Reads a report of the store that is short enough to be held whole. */
export async function readReport<Body>(chunks: Report<Body>): Promise<Body> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of chunks) text += decoder.decode(chunk, { stream: true });
  return JSON.parse(text) as Body;
}

interface Counters<Value> {
  request_count: Value;
  input_tokens: Value;
  output_tokens: Value;
}

/** Counters, or columns of them, by the API's names. */
export const countersBody = <Value>(counters: Record<keyof UsageSum, Value>): Counters<Value> => ({
  request_count: counters.requestCount,
  input_tokens: counters.inputTokens,
  output_tokens: counters.outputTokens,
});
