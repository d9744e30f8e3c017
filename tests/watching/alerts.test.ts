import { expect, test } from "bun:test";
import { alerts, alertsYaml } from "../../src/watching/alerts.ts";
import { listSeries, seriesIn } from "./series.ts";

test("every alert reads series that exist", async () => {
  const known = await listSeries();
  for (const { name, expression } of alerts) {
    const read = seriesIn(expression);
    expect({ name, read: read.length > 0, missing: read.filter((series) => !known.has(series)) }).toEqual({
      name,
      read: true,
      missing: [],
    });
  }
});

test("the served file holds each alert once, as it is", () => {
  const { groups } = Bun.YAML.parse(alertsYaml()) as { groups: { rules: Record<string, unknown>[] }[] };
  expect(groups[0]?.rules.map(({ alert, expr, for: time }) => [alert, expr, time])).toEqual(
    alerts.map(({ name, expression, for: time }) => [name, expression, time]),
  );
  expect(new Set(alerts.map(({ name }) => name)).size).toBe(alerts.length);
});
