/** A line of CSV by RFC 4180: it ends with CRLF, and only cells that need quotes have them. */
export const csvLine = (cells: readonly (string | number)[]): string => `${cells.map(cellText).join(",")}\r\n`;

function cellText(cell: string | number): string {
  if (typeof cell === "number") return String(cell);
  // Spreadsheets evaluate text that starts like a formula (OWASP, "CSV Injection"), and key names are free text.
  const escaped = /^[=+\-@＝＋－＠\t\r\n]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(escaped) ? `"${escaped.replaceAll('"', '""')}"` : escaped;
}
