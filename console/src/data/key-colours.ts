/** How many keys get a colour of their own; the rest fold into Other. */
export const colourCount = 8;

/**
 * Gives each id a colour number from 1. An id keeps the one it had, so that bars do not change colour when a refresh changes their order.
 * @param before what this returned the last time
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
