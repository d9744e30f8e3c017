import { expect, test } from "bun:test";
import { dirname, join } from "node:path";
import { repositoryRoot } from "../support/import-table.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { readHouse } from "./measures.ts";
import { measureRooms, readGraph, roomInside, roomInWhole } from "./rooms.ts";

const files = {
  "src/main.ts": 'import "./shop/till.ts"; import type { Price } from "./price.ts"; import "elysia";',
  "src/price.ts": "export type Price = number;",
  "src/shop/till.ts": 'import "../price.ts"; import "./goods/bread.ts"; void import("./goods/milk.ts");',
  "src/shop/goods/bread.ts": 'import "./milk.ts";',
  "src/shop/goods/milk.ts": 'import "../shelf.ts";',
  "src/shop/shelf.ts": 'export type { Bread } from "./goods/bread.ts";',
  "console/src/page.tsx": 'import type { Price } from "../../src/price.ts";',
};

async function readFixture() {
  using folder = createTempFolder();
  for (const [file, text] of Object.entries(files)) await Bun.write(folder.file(file), text);
  return await readGraph(folder.path, Object.keys(files));
}

test("a file leads to the files that it imports, types included, and to no package", async () => {
  const graph = await readFixture();
  expect([...(graph.get("src/main.ts") ?? [])]).toEqual(["src/shop/till.ts", "src/price.ts"]);
  expect([...(graph.get("src/shop/till.ts") ?? [])]).toEqual([
    "src/price.ts",
    "src/shop/goods/bread.ts",
    "src/shop/goods/milk.ts",
  ]);
});

test("the whole has a room for each entry of src, and one for the console", async () => {
  expect(measureRooms(await readFixture(), roomInWhole)).toEqual({ rooms: 4, arrows: 4, up: [] });
});

test("a folder's rooms are its files and sub-folders; of rooms that import each other, one arrow runs up", async () => {
  const rooms = measureRooms(await readFixture(), (file) => roomInside("src/shop", file));
  expect(rooms).toEqual({ rooms: 3, arrows: 3, up: ["shelf.ts -> goods"] });
});

/** At the head of a room's first file, and at most as long: what it keeps true, its states, what it may not know. */
const maxDesignLines = 15;

const linesOfHead = (text: string): number => (/^(?:\/\/.*\n)*/.exec(text)?.[0] ?? "").split("\n").length - 1;

test("each folder has a file that begins with the folder's design, in at most fifteen lines", async () => {
  const heads: { file: string; lines: number }[] = [];
  for (const file of (await readHouse()).graph.keys()) {
    heads.push({ file, lines: linesOfHead(await Bun.file(join(repositoryRoot, file)).text()) });
  }
  const without = [...Map.groupBy(heads, ({ file }) => dirname(file))]
    .filter(([, inFolder]) => !inFolder.some(({ lines }) => lines > 1))
    .map(([folder]) => folder);
  expect(without.toSorted()).toEqual([]);
  expect(heads.filter(({ lines }) => lines > maxDesignLines)).toEqual([]);
});
