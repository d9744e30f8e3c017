import { expect, test } from "bun:test";
import { createTempFolder } from "../support/temp-folder.ts";
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
