import { cachedTokensOf, type CountedField } from "./usage.ts";

/** What a million tokens cost, of the models that a pattern names, from a day on. */
export interface ModelPrice {
  /** A model's name; `*` stands for any characters. */
  pattern: string;
  /** The first day, as a day number in Seoul. */
  fromDay: number;
  input: number;
  /** Input from a cache; null: the same as the input. */
  cached: number | null;
  output: number;
}

/** A price with what is needed to look it up, for thousands of look-ups. */
export interface RankedPrice {
  price: ModelPrice;
  /** The pattern's text between its asterisks. */
  parts: readonly string[];
}

/** A price comes before all those that it is preferred to. */
export const rankPrices = (prices: readonly ModelPrice[]): RankedPrice[] =>
  prices
    .map((price) => ({ price, parts: price.pattern.split("*") }))
    .toSorted((a, b) => specificity(b) - specificity(a) || b.price.fromDay - a.price.fromDay);

/** An exact name comes before any pattern, a pattern with more letters before one with fewer. */
const specificity = ({ parts }: RankedPrice): number =>
  parts.length > 1 ? parts.join("").length : Number.MAX_SAFE_INTEGER;

/** Looks up the price of a model on a day (a day number in Seoul); undefined if there is none. */
export function pricesOn(ranked: readonly RankedPrice[], day: number): (model: string) => ModelPrice | undefined {
  const valid = ranked.filter(({ price }) => price.fromDay <= day);
  const found = new Map<string, ModelPrice | undefined>();
  return (model) => {
    if (!found.has(model)) found.set(model, valid.find(({ parts }) => matches(parts, model))?.price);
    return found.get(model);
  };
}

/** Not as a regular expression: a hostile pattern could make its time grow exponentially. */
function matches([first = "", ...rest]: readonly string[], model: string): boolean {
  const last = rest.pop();
  if (last === undefined) return first === model;
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
export const priceDays = (ranked: readonly RankedPrice[]): number[] => ranked.map(({ price }) => price.fromDay);

export function priceTokens(price: ModelPrice, tokens: Record<CountedField, number>): number {
  const { inputTokens, cachedBesideInputTokens, outputTokens } = tokens;
  const fromCacheTokens = cachedTokensOf(tokens);
  return pricePrompts(price, { promptTokens: inputTokens + cachedBesideInputTokens, fromCacheTokens, outputTokens });
}

/** @param tokens the prompts are whole, with what came from a cache */
export function pricePrompts(
  price: ModelPrice,
  { promptTokens, fromCacheTokens, outputTokens }: Record<"promptTokens" | "fromCacheTokens" | "outputTokens", number>,
): number {
  const uncached = Math.max(0, promptTokens - fromCacheTokens);
  const cached = price.cached ?? price.input;
  return (uncached * price.input + fromCacheTokens * cached + outputTokens * price.output) / 1_000_000;
}
