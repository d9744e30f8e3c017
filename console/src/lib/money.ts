export interface Cost {
  /** Null: it is not known of any part. */
  cost: number | null;
  /** Some of it is not in the cost. */
  cost_is_partial: boolean;
}

/** `$12.30`, `₩1,200`; small amounts with more digits. An unknown currency has its code. */
export function money(amount: number, currency: string): string {
  const digits = amount !== 0 && Math.abs(amount) < 0.1 ? { maximumSignificantDigits: 2 } : {};
  return new Intl.NumberFormat("en-US", { style: "currency", currency, ...digits }).format(amount);
}

/** Never guessed: a part without a price makes the sum a lower bound. */
export function costLabel({ cost, cost_is_partial: isPartial }: Cost, currency: string): string {
  if (cost === null) return "–";
  return `${isPartial ? "≥ " : ""}${money(cost, currency)}`;
}

/** Why the label is not an exact amount. */
export function costTitle({ cost, cost_is_partial: isPartial }: Cost): string | undefined {
  if (isPartial) return `The cost of ${cost === null ? "" : "some of "}these tokens is not known`;
  return undefined;
}
