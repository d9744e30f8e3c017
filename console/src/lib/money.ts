export interface Cost {
  /** Null: it is not known of any part. */
  cost: number | null;
  /** Some of it is not in the cost. */
  cost_is_partial: boolean;
}

/** `$12.30`, `₩1,200`; amounts of less than two digits with more. An unknown currency has its code. */
export function money(amount: number, currency: string): string {
  const style = { style: "currency", currency } as const;
  const format = new Intl.NumberFormat("en-US", style);
  const { maximumFractionDigits = 0 } = format.resolvedOptions();
  const isSmall = amount !== 0 && Math.abs(amount) < 10 ** (1 - maximumFractionDigits);
  return (isSmall ? new Intl.NumberFormat("en-US", { ...style, maximumSignificantDigits: 2 }) : format).format(amount);
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
