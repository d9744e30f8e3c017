import { matchesGlob } from "./keys.ts";
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

/** A price comes before all those that it is preferred to. */
export const rankPrices = (prices: readonly ModelPrice[]): ModelPrice[] =>
  prices.toSorted((a, b) => specificity(b) - specificity(a) || b.fromDay - a.fromDay);

/** An exact name comes before any pattern, a pattern with more letters before one with fewer. */
const specificity = ({ pattern }: ModelPrice): number =>
  pattern.includes("*") ? pattern.replaceAll("*", "").length : Number.MAX_SAFE_INTEGER;

/** Looks up the price of a model on a day (a day number in Seoul); undefined if there is none. */
export function pricesOn(ranked: readonly ModelPrice[], day: number): (model: string) => ModelPrice | undefined {
  const valid = ranked.filter(({ fromDay }) => fromDay <= day);
  const found = new Map<string, ModelPrice | undefined>();
  return (model) => found.getOrInsertComputed(model, () => valid.find(({ pattern }) => matchesGlob(pattern, model)));
}

/** Days on which a price begins, as day numbers: between two of them all prices stay the same. */
export const priceDays = (ranked: readonly ModelPrice[]): number[] => ranked.map(({ fromDay }) => fromDay);

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
