import { expect, test } from "bun:test";
import { safeRedirect } from "../../../console/src/lib/session.ts";

test.each(["/", "/keys", "/usage?range=7d&key=3", "/gpus#x"])("%s is a valid destination", (next) => {
  expect(safeRedirect(next)).toBe(next);
});

test.each([
  undefined,
  "",
  "https://elsewhere.example",
  "//elsewhere.example",
  "/\\elsewhere.example",
  "/\t/elsewhere.example",
  "javascript:alert(1)",
  "/login?next=/login",
])("%p is replaced by the overview", (next) => expect(safeRedirect(next)).toBe("/"));
