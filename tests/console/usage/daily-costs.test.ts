import { expect, test } from "bun:test";
import { lineId, linesByDayAndKey } from "../../../console/src/usage/daily-usage.ts";

test("a line has the cost of its key on its day, and none if that is not known", () => {
  const rows = {
    date: ["2026-11-21", "2026-11-20"],
    key_id: [2, 2],
    request_count: [1, 1],
    input_tokens: [1, 1],
    output_tokens: [1, 1],
  };
  const cost = { cost: 3, cost_is_partial: false };
  const lines = linesByDayAndKey(rows, { key_id: [2], name: ["two"] }, new Map([[lineId("2026-11-20", 2), cost]]));
  expect(lines.map((line) => line.cost)).toEqual([undefined, cost]);
});
