import { expect, test } from "bun:test";
import { listImports } from "./module-imports.ts";

const forms: readonly (readonly [source: string, isType: boolean])[] = [
  [`import { a } from "./other.ts";`, false],
  [`import { type A } from "./other.ts";`, false],
  [`import type { A } from "./other.ts";`, true],
  [`import "./other.ts";`, false],
  [`import other = require("./other.ts");`, false],
  [`export { a } from "./other.ts";`, false],
  [`export * from "./other.ts";`, false],
  [`export type { A } from "./other.ts";`, true],
  [`export type * from "./other.ts";`, true],
  [`const other = await import("./other.ts");`, false],
  [`const other = require("./other.ts");`, false],
  [`const load = (): Promise<unknown> => import("./other.ts");`, false],
  [`type A = import("./other.ts").A;`, true],
  [`new Worker(new URL("./other.ts", import.meta.url));`, false],
  [`const view = () => <Show when={import("./other.ts")} />;`, false],
];

test.each(forms)("finds the module in %s", (source, isType) => {
  expect(listImports("file.tsx", source)).toEqual([{ specifier: "./other.ts", isType }]);
});

test.each([
  `// import { a } from "./other.ts";`,
  `const text = 'import { a } from "./other.ts";';`,
  `export const a = 1;`,
  `new URL("/v1/models", origin);`,
])("finds no module in %s", (source) => {
  expect(listImports("file.ts", source)).toEqual([]);
});

test("refuses a computed name and a syntax error", () => {
  expect(() => listImports("file.ts", "await import(name);")).toThrow("computed");
  expect(() => listImports("file.ts", "import {")).toThrow("file.ts");
});
