import { expect, test } from "bun:test";
import { grafanaDashboard } from "../../src/watching/grafana-dashboard.ts";
import { listSeries, seriesIn } from "./series.ts";

interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string; refId: string }[];
}

const panels = grafanaDashboard()["panels"] as Panel[];

test("every panel reads series that exist", async () => {
  const known = await listSeries();
  for (const { title, targets = [], type } of panels) {
    if (type === "row") continue;
    const read = targets.flatMap(({ expr }) => seriesIn(expr));
    expect({ title, read: read.length > 0, missing: read.filter((series) => !known.has(series)) }).toEqual({
      title,
      read: true,
      missing: [],
    });
  }
});

test("panels have ids of their own and do not overlap", () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, n) => `${x + (n % w)} ${y + Math.floor(n / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(Math.max(...panels.map(({ gridPos }) => gridPos.x + gridPos.w))).toBe(24);
});

test("an import replaces no dashboard of another id, and the data source is chosen there", () => {
  const dashboard = grafanaDashboard();
  expect(dashboard).not.toHaveProperty("id");
  expect(
    JSON.stringify(dashboard)
      .match(/"uid":"[^"]*"/g)
      ?.filter((uid) => !uid.includes("datasource")),
  ).toEqual(['"uid":"tollgate"']);
});
