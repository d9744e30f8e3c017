import { expect, test } from "bun:test";
import { formatNumber, markdownTable } from "./table.ts";

test("a table has text on the left and numbers on the right", () => {
  expect(
    markdownTable([
      ["", "a"],
      ["text", "1"],
    ]),
  ).toBe("|      |   a |\n| ---- | --: |\n| text |   1 |");
});

test("numbers have about three significant digits", () => {
  const numbers = [undefined, 0, 0.007, 0.16, 4.016, 25, 100.4, 82_521];
  expect(numbers.map(formatNumber)).toEqual(["", "0", "0.007", "0.16", "4.02", "25.0", "100", "82,521"]);
});
