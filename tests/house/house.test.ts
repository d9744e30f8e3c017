import { expect, test } from "bun:test";
import { isOver, readBudgets } from "./budgets.ts";
import { measureHouse, readHouse } from "./measures.ts";

// Two type checks of the program, and requests to an instrumented server.
test("no measure of the program exceeds its budget by more than a tenth", async () => {
  const measured = await measureHouse(await readHouse(), await readBudgets());
  expect(measured.filter(isOver)).toEqual([]);
});

test("a budget is exceeded above a tenth more than its value", () => {
  const valuesOver = [9, 10, 11, 12].filter((value) => isOver({ name: "rooms in the whole", max: 10, value }));
  expect(valuesOver).toEqual([12]);
});

test("a budget of something that is not measured is an error", async () => {
  const budgets = [{ name: "doors in the whole", max: 1 }];
  await expect(measureHouse(await readHouse(), budgets)).rejects.toThrow("doors in the whole is not measured");
});
