import { type SnakeCase, snakeCase, sumFields, type UsageSum } from "../../domain/usage.ts";
import type { Report } from "../../store/reports/contract.ts";

/** Reads a report of the store that is short enough to be held whole. */
export async function readReport<Body>(chunks: Report<Body>): Promise<Body> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of chunks) text += decoder.decode(chunk, { stream: true });
  return JSON.parse(text) as Body;
}

type SumName = SnakeCase<keyof UsageSum>;

/** Counters, or columns of them, by the API's names. */
export const countersBody = <Value>(counters: Record<keyof UsageSum, Value>): Record<SumName, Value> =>
  Object.fromEntries(sumFields.map((field) => [snakeCase(field), counters[field]])) as Record<SumName, Value>;
