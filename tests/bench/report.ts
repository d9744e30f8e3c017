import type { Figure, Measure, Run } from "./measures.ts";

/** One figure of one measure: a median for each contestant that was measured. */
export interface Row {
  measure: string;
  figure: string;
  unit: Figure["unit"];
  values: ReadonlyMap<string, number>;
}

export interface Report {
  rows: readonly Row[];
  contestants: readonly string[];
  /** When, with what, on which machine. */
  conditions: string;
}

export function rowsOf(measure: Measure, runs: ReadonlyMap<string, readonly Run[]>): Row[] {
  return measure.figures.map((figure) => ({
    measure: measure.title,
    figure: figure.name,
    unit: figure.unit,
    values: new Map([...runs].map(([contestant, own]) => [contestant, median(own.map(figure.of))])),
  }));
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/** Ratios come first: they hold on other machines too, the numbers behind them on this one alone. */
export function markdownOf({ rows, contestants, conditions }: Report): string {
  const head = ["", "", "Tollgate : nginx", "Tollgate : Portkey", ...contestants];
  const lines = rows.map(({ measure, figure, unit, values }) => [
    measure,
    unit === "" ? figure : `${figure} (${unit})`,
    ratio(values, "nginx"),
    ratio(values, "Portkey"),
    ...contestants.map((contestant) => rounded(values.get(contestant))),
  ]);
  return `${markdownTable([head, ...lines], 2)}\n\n${conditions}\n`;
}

/** @param names how many columns are words and no numbers */
export function markdownTable([head = [], ...lines]: readonly string[][], names = 1): string {
  const rule = head.map((_, column) => (column < names ? "---" : "---:"));
  return [head, rule, ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function ratio(values: Row["values"], other: string): string {
  const [ours, theirs] = [values.get("Tollgate"), values.get(other)];
  return ours === undefined || theirs === undefined || theirs === 0 || ours === 0 ? "" : (ours / theirs).toFixed(2);
}

function rounded(value: number | undefined): string {
  if (value === undefined) return "";
  if (value === 0 || value >= 100) return value.toFixed(0);
  return value.toFixed(value < 10 ? 2 : 1);
}

const width = 760;
const barHeight = 16;
const groupGap = 30;
const labelWidth = 150;
const colours: Readonly<Record<string, string>> = { Tollgate: "#2f7d5b", nginx: "#8a94a6", Portkey: "#c08a4b" };

/** Processor time per request and per frame as bars, one group for each measure that compares. */
export function svgOf({ rows, conditions }: Report): string {
  const groups = rows.filter(({ unit, values }) => unit === "µs" && values.size > 1);
  let y = 34;
  const parts: string[] = [];
  for (const { measure, figure, values } of groups) {
    const shown = [...values].filter(([, value]) => value > 0);
    const longest = Math.max(...shown.map(([, value]) => value));
    parts.push(text(12, y, `${measure}: ${figure}, µs`, "bold"));
    y += 8;
    for (const [name, value] of shown) {
      const length = Math.max(1, (value / longest) * (width - labelWidth - 90));
      parts.push(
        text(12, y + 12, name),
        `<rect x="${labelWidth}" y="${y}" width="${length.toFixed(1)}" height="${barHeight - 4}" fill="${colours[name] ?? "#b9c0cc"}"/>`,
        text(labelWidth + length + 6, y + 11, rounded(value)),
      );
      y += barHeight;
    }
    y += groupGap;
  }
  for (const line of conditions.split("; ")) {
    parts.push(text(12, y, line));
    y += barHeight;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y + 16}" viewBox="0 0 ${width} ${y + 16}" font-family="system-ui, sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#ffffff"/>
${parts.join("\n")}
</svg>
`;
}

function text(x: number, y: number, words: string, weight = "normal"): string {
  return `<text x="${x.toFixed(1)}" y="${y}" font-weight="${weight}" fill="#1d2430">${Bun.escapeHTML(words)}</text>`;
}
