import { expect, test } from "bun:test";
import { costsByLine, lineId } from "../../../console/src/usage/model-usage.ts";
import type { ModelUsageRow } from "../../../console/src/usage/queries.ts";
import type { Cost } from "../../../console/src/lib/money.ts";
import { everyKey } from "../../../console/src/usage/usage-buckets.ts";

const row = (day: string, key_id: number | null, cost: number | null, cost_is_partial = false): ModelUsageRow => ({
  bucket_start: `${day}T00:00:00.000+09:00`,
  key_id,
  key_name: key_id === null ? null : `key ${key_id}`,
  model: null,
  request_count: 1,
  input_tokens: 1,
  cached_input_tokens: 0,
  output_tokens: 1,
  reasoning_tokens: 0,
  cost,
  cost_is_partial,
});
const exact = (cost: number) => ({ cost, cost_is_partial: false });

test("costs are added up by day, and by day and key", () => {
  const rows = [row("2026-11-20", 1, 2), row("2026-11-20", 2, 3), row("2026-11-21", 2, null, true)];
  const costs = costsByLine({ rows, more: false }, everyKey);
  expect(costs?.days).toEqual(
    new Map<string, Cost>([
      ["2026-11-20", exact(5)],
      ["2026-11-21", { cost: null, cost_is_partial: true }],
    ]),
  );
  expect(costs?.keys.get(lineId("2026-11-20", 2))).toEqual(exact(3));
});

test("only the shown keys count", () => {
  const rows = [row("2026-11-20", 1, 2), row("2026-11-20", 2, 3)];
  const costOf = (selection: object) =>
    costsByLine({ rows, more: false }, { ...everyKey, ...selection })?.days.get("2026-11-20")?.cost;
  expect([costOf({ search: "KEY 2" }), costOf({ hiddenIds: [2] }), costOf({ search: "none" })]).toEqual([
    3,
    2,
    undefined,
  ]);
});

test("days of models need no key, and a list that is cut has no costs", () => {
  const rows = [row("2026-11-20", null, 2), row("2026-11-20", null, 3)];
  expect(costsByLine({ rows, more: false }, everyKey)?.days.get("2026-11-20")).toEqual(exact(5));
  expect(costsByLine({ rows, more: true }, everyKey)).toBeUndefined();
  expect(costsByLine(undefined, everyKey)).toBeUndefined();
});
