/** Values in the order of the columns. */
export type RowValues = readonly (string | number | null)[];

/**
 * Adds rows up whose first `keyLength` values are the same. Sorted by these, so that concurrent flushes lock rows in the same
 * order.
 */
export function groupRows(rows: readonly RowValues[], keyLength: number): readonly RowValues[] {
  const groups = new Map<string, (string | number | null)[]>();
  for (const row of rows) {
    const key = row.slice(0, keyLength).join(" ");
    const sum = groups.get(key);
    if (sum === undefined) groups.set(key, [...row]);
    else for (let at = keyLength; at < row.length; at++) sum[at] = Number(sum[at]) + Number(row[at]);
  }
  return [...groups.values()].toSorted((a, b) => compareRows(a, b, keyLength));
}

function compareRows(a: RowValues, b: RowValues, keyLength: number): number {
  for (let at = 0; at < keyLength; at++) {
    const [left, right] = [a[at] ?? 0, b[at] ?? 0];
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}
