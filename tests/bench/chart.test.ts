import { expect, test } from "bun:test";
import { svgChart } from "./chart.ts";

test("the chart has a bar for each target of each CPU figure, scaled to the longest", () => {
  const svg = svgChart([
    {
      workload: "small",
      figure: "CPU per request",
      unit: "µs",
      conditions: "today",
      values: { nginx: 25, Tollgate: 100 },
    },
    { workload: "streams", figure: "frames lost", unit: "", conditions: "today", values: { direct: 0, Tollgate: 0 } },
  ]);
  const widths = [...svg.matchAll(/<rect x="150" y="\d+" width="([\d.]+)"/g)].map(([, width]) => Number(width));
  expect(widths).toHaveLength(2);
  expect((widths[1] ?? 0) / (widths[0] ?? 1)).toBeCloseTo(4, 1);
  expect(svg).toContain("small: CPU per request, µs");
  expect(svg).toContain("today");
  expect(svg).not.toContain("frames lost");
});
