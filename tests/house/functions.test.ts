import { expect, test } from "bun:test";
import { createTempFolder } from "../support/temp-folder.ts";
import { instrument, listFunctions } from "./functions.ts";

const source = `declare function declared(): void;
export function outer(value: number): number {
  const inner = () => ({ value });
  return [inner().value].map((one) => one + 1)[0] ?? 0;
}
class Thing {
  method(): void {}
}
`;

test("every function with a body is listed, with its name and its lines", () => {
  expect(listFunctions("file.ts", source).map(({ name, line, lines }) => [name, line, lines])).toEqual([
    ["outer", 2, 4],
    ["inner", 3, 1],
    ["anonymous", 4, 1],
    ["method", 7, 1],
  ]);
});

test("an instrumented source calls first thing in each function, and returns the same", async () => {
  const called: string[] = [];
  Object.assign(globalThis, { noteCall: (name: string) => called.push(name) });
  const instrumented = instrument("file.ts", source, "noteCall");
  using folder = createTempFolder();
  await Bun.write(folder.file("file.ts"), instrumented);
  const { outer } = await import(folder.file("file.ts"));
  expect(outer(1)).toBe(2);
  expect(called).toEqual(["file.ts:2:outer", "file.ts:3:inner", "file.ts:4:anonymous"]);
  expect(instrumented.split("\n")).toHaveLength(source.split("\n").length);
});
