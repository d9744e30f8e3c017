import { expect, test } from "bun:test";
import { findCircles } from "./circles.ts";

const graphOf = (edges: Record<string, string>): ReadonlyMap<string, ReadonlySet<string>> =>
  new Map(Object.entries(edges).map(([node, targets]) => [node, new Set(targets)]));

test("a chain has no circle", () => {
  expect(findCircles(graphOf({ a: "bc", b: "c", c: "" }))).toEqual([]);
});

test("each circle is found once, without the nodes that lead to it or away from it", () => {
  expect(findCircles(graphOf({ a: "b", b: "c", c: "b", d: "d", e: "fx", f: "g", g: "e", x: "" }))).toEqual([
    ["b", "c"],
    ["d"],
    ["e", "f", "g"],
  ]);
});
