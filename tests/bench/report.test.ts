import { describe, expect, test } from "bun:test";
import { markdownOf, markdownTable, median, rowsOf, svgOf } from "./report.ts";

const conditions = "2026-11-21; Bun 1.4.5; medians of 5";
const report = {
  conditions,
  contestants: ["direct", "nginx", "Tollgate"],
  rows: [
    {
      measure: "32 connections",
      figure: "CPU per request",
      unit: "µs" as const,
      values: new Map([
        ["nginx", 25],
        ["Tollgate", 100.4],
      ]),
    },
    {
      measure: "streams",
      figure: "frames lost",
      unit: "" as const,
      values: new Map([
        ["direct", 0],
        ["Tollgate", 0],
      ]),
    },
  ],
};

describe("a report of the bench", () => {
  test("puts ratios first, then what each contestant came to", () => {
    expect(markdownOf(report).split("\n")).toEqual([
      "|  |  | Tollgate : nginx | Tollgate : Portkey | direct | nginx | Tollgate |",
      "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
      "| 32 connections | CPU per request (µs) | 4.02 |  |  | 25.0 | 100 |",
      "| streams | frames lost |  |  | 0 |  | 0 |",
      "",
      conditions,
      "",
    ]);
  });

  test("draws a bar for each contestant of what is measured in processor time, the longest the whole width", () => {
    const svg = svgOf(report);
    const widths = [...svg.matchAll(/<rect x="150" y="\d+" width="([\d.]+)"/g)].map(([, width]) => Number(width));
    expect(widths).toHaveLength(2);
    expect((widths[1] ?? 0) / (widths[0] ?? 1)).toBeCloseTo(100.4 / 25, 1);
    expect(svg).toContain("32 connections: CPU per request, µs");
    expect(svg).not.toContain("frames lost");
  });

  test("takes the median of a contestant's rounds", () => {
    expect(median([5, 1, 9])).toBe(5);
    const runs = new Map([["Tollgate", [30, 10, 20].map((cpuUs) => ({ cpuUs }) as never)]]);
    const figures = [{ name: "CPU", unit: "µs" as const, of: ({ cpuUs }: { cpuUs: number }) => cpuUs }];
    const [row] = rowsOf({ name: "m", title: "M", quick: true, load: {}, figures }, runs);
    expect(row).toEqual({ measure: "M", figure: "CPU", unit: "µs", values: new Map([["Tollgate", 20]]) });
  });

  test("makes a table of words to the left and numbers to the right", () => {
    expect(
      markdownTable([
        ["", "a"],
        ["b", "1"],
      ]),
    ).toBe("|  | a |\n| --- | ---: |\n| b | 1 |");
  });
});
