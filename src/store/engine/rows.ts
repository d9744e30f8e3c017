export type RowValues = (number | string)[];

/**
 * Adds rows up whose first `keyLength` values are the same. Sorted by these, so that concurrent flushes lock rows in the same
 * order.
 */
export function groupRows(rows: RowValues[], keyLength: number): RowValues[] {
  if (rows.length < 2) return rows;
  const groups = new Map<string, RowValues>();
  for (const row of rows) {
    const key = row.slice(0, keyLength).join(" ");
    const sum = groups.get(key);
    if (sum === undefined) groups.set(key, row);
    else for (let at = keyLength; at < row.length; at++) sum[at] = Number(sum[at]) + Number(row[at]);
  }
  return [...groups.values()].toSorted((a, b) => compareRows(a, b, keyLength));
}

function compareRows(a: RowValues, b: RowValues, keyLength: number): number {
  for (let at = 0; at < keyLength; at++) {
    const [left = 0, right = 0] = [a[at], b[at]];
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}
