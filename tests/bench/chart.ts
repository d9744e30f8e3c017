import type { Row } from "./results.ts";
import { formatNumber } from "./table.ts";

const width = 760;
const barHeight = 16;
const groupGap = 30;
const labelWidth = 150;
const colours: Readonly<Record<string, string>> = {
  Tollgate: "#2f7d5b",
  nginx: "#8a94a6",
  Busbar: "#a5574f",
  GoModel: "#c08a4b",
};

/** CPU per request and per frame as bars, one group for each workload with several targets. */
export function svgChart(rows: readonly Row[]): string {
  const groups = rows.filter(({ unit, values }) => unit === "µs" && Object.keys(values).length > 1);
  let y = 34;
  const parts: string[] = [];
  for (const { workload, figure, values } of groups) {
    const shown = Object.entries(values).filter(([, value]) => value > 0);
    const longest = Math.max(...shown.map(([, value]) => value));
    parts.push(text(12, y, `${workload}: ${figure}, µs`, "bold"));
    y += 8;
    for (const [name, value] of shown) {
      const length = Math.max(1, (value / longest) * (width - labelWidth - 90));
      parts.push(
        text(12, y + 12, name),
        `<rect x="${labelWidth}" y="${y}" width="${length.toFixed(1)}" height="${barHeight - 4}" fill="${colours[name] ?? "#b9c0cc"}"/>`,
        text(labelWidth + length + 6, y + 11, formatNumber(value)),
      );
      y += barHeight;
    }
    y += groupGap;
  }
  for (const conditions of new Set(groups.map((row) => row.conditions))) {
    parts.push(text(12, y, conditions));
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
