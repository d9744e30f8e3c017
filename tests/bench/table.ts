/**
 * A table in Markdown, padded as the formatter pads it.
 * @param textColumns the number of columns with text, which are aligned left; the others hold numbers
 */
export function markdownTable(lines: readonly string[][], textColumns = 1): string {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(3, ...lines.map((cells) => cells[column]?.length ?? 0)));
  const rule = widths.map((width, column) => (column < textColumns ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  const padded = (cells: readonly string[]): string[] =>
    widths.map((width, column) => {
      const cell = cells[column] ?? "";
      return column < textColumns ? cell.padEnd(width) : cell.padStart(width);
    });
  const [head = [], ...rest] = lines;
  return [padded(head), rule, ...rest.map(padded)].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** Three significant digits, whole numbers from 100 on. An absent value is empty. */
export function formatNumber(value: number | undefined): string {
  if (value === undefined) return "";
  if (value === 0 || value >= 100) return Math.round(value).toLocaleString("en");
  if (value >= 1) return value.toFixed(value < 10 ? 2 : 1);
  return value.toFixed(value < 0.1 ? 3 : 2);
}
