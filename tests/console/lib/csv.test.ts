import { expect, test } from "bun:test";
import { csv } from "../../../console/src/lib/csv.ts";

test("rows end in CRLF, and numbers are not quoted", () => {
  expect(
    csv(
      ["a", "b"],
      [
        [1, "x"],
        [1_234_567, "y"],
      ],
    ),
  ).toBe("a,b\r\n1,x\r\n1234567,y\r\n");
});

test.each([
  ['a "quoted" name', '"a ""quoted"" name"'],
  ["a, b", '"a, b"'],
  ["two\nlines", '"two\nlines"'],
  ["회의록", "회의록"],
  ["<b>bold</b>", "<b>bold</b>"],
])("the cell %p is written as %p", (cell, text) => expect(csv(["h"], [[cell]])).toBe(`h\r\n${text}\r\n`));

test.each([
  "=1+1",
  "+1",
  "-1",
  "@SUM(A1)",
  "\t=1",
  "\r=1",
  "\n=1",
  "＝1+1",
  "＋1",
  "－1",
  "＠SUM(A1)",
  '=HYPERLINK("http://x")',
])("a name like %p is not evaluated as a formula", (cell) => {
  const [, line = ""] = csv(["h"], [[cell]]).split("\r\n");
  expect(line.replace(/^"/, "")).toStartWith("'");
});

test("a negative number is not escaped", () => expect(csv(["h"], [[-1]])).toBe("h\r\n-1\r\n"));
