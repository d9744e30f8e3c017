import { dayNumberFrom } from "../time/seoul.ts";
import type { PricesBody } from "./insight-schemas.ts";

type ModelPrice = PricesBody["models"][number];

export interface PricedTokens {
  inputTokens: number;
  cachedInputTokens: number;
  /** Of the cached input, what is not part of the input. */
  cachedBesideInputTokens: number;
  outputTokens: number;
}

/** The price of a model on a day (a day number in Seoul); undefined if there is none. */
export function findPrice(prices: PricesBody, model: string, day: number): ModelPrice | undefined {
  return prices.models
    .filter(({ pattern, valid_from: from }) => dayNumberFrom(from) <= day && matches(pattern, model))
    .toSorted(
      (a, b) =>
        specificity(b.pattern) - specificity(a.pattern) || dayNumberFrom(b.valid_from) - dayNumberFrom(a.valid_from),
    )[0];
}

/** An exact name comes before any pattern, a pattern with more letters before one with fewer. */
const specificity = (pattern: string): number =>
  pattern.includes("*") ? pattern.replaceAll("*", "").length : Number.MAX_SAFE_INTEGER;

/** Not as a regular expression: a hostile pattern could make its time grow exponentially. */
function matches(pattern: string, model: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return pattern === model;
  if (!model.startsWith(first) || model.length < first.length + last.length || !model.endsWith(last)) return false;
  let at = first.length;
  const end = model.length - last.length;
  for (const part of rest) {
    const found = model.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

/** Days on which a price begins, as day numbers: between two of them all prices stay the same. */
export const priceDays = ({ models }: PricesBody): number[] => models.map((one) => dayNumberFrom(one.valid_from));

export function costOf(price: ModelPrice, tokens: PricedTokens): number {
  const { inputTokens, cachedInputTokens, cachedBesideInputTokens, outputTokens } = tokens;
  const uncached = Math.max(0, inputTokens - (cachedInputTokens - cachedBesideInputTokens));
  const cached = price.cached_input ?? price.input;
  return (uncached * price.input + cachedInputTokens * cached + outputTokens * price.output) / 1_000_000;
}
