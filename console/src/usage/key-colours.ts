/** How many keys get their own colour; the chart draws the rest as Other. */
export const colourCount = 8;

/**
 * Colour numbers from 1 for the first `colourCount` ids. An id keeps its previous colour, so that bars do not change
 * colour when a refresh changes their order.
 * @param before the previous return value
 */
export function assignColours(ids: readonly number[], before: ReadonlyMap<number, number>): Map<number, number> {
  const colours = new Map<number, number>();
  for (const id of ids.slice(0, colourCount)) {
    const kept = before.get(id);
    if (kept !== undefined) colours.set(id, kept);
  }
  const free = Array.from({ length: colourCount }, (_, index) => index + 1).filter(
    (colour) => ![...colours.values()].includes(colour),
  );
  for (const id of ids.slice(0, colourCount)) {
    if (!colours.has(id)) colours.set(id, free.shift() ?? colourCount);
  }
  return colours;
}
