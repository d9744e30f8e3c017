import { expect, test } from "bun:test";
import { keyColumns, parseKeySort, sortKeys } from "../../../console/src/keys/key-list.ts";
import { formatSort, nextSort } from "../../../console/src/lib/sort.ts";
import type { Key } from "../../../console/src/queries.ts";

const key = (id: number, name: string, lastUsedAt: string | null, requests: number): Key => {
  const shown = { id, name, created_at: "2026-11-01T00:00:00.000+09:00", last_used_at: lastUsedAt };
  return { ...shown, total_request_count: requests } as Partial<Key> as Key;
};
const keys = [
  key(1, "beta 10", "2026-11-20T10:00:00.000+09:00", 5),
  key(2, "Beta 9", null, 5),
  key(3, "alpha", "2026-11-21T10:00:00.000+09:00", 7),
];
const idsBy = (text: string | undefined): number[] => sortKeys(keys, parseKeySort(text)).map(({ id }) => id);

test("names sort by number and ignore case", () => {
  expect(idsBy("name")).toEqual([3, 2, 1]);
  expect(idsBy("-name")).toEqual([1, 2, 3]);
});

test("Created sorts by the time, not by the id, which an import does not follow", () => {
  const older: Key = { ...key(4, "imported", null, 0), created_at: "2026-10-01T00:00:00.000+09:00" };
  expect(sortKeys([...keys, older], parseKeySort("created")).map(({ id }) => id)).toEqual([4, 1, 2, 3]);
  expect(sortKeys([...keys, older], parseKeySort("-created")).map(({ id }) => id)).toEqual([1, 2, 3, 4]);
});

test("a key never used is last when the latest is first", () => {
  expect(idsBy("-used")).toEqual([3, 1, 2]);
  expect(idsBy("used")).toEqual([2, 1, 3]);
});

test("equal keys are in the order of their ids", () => {
  expect(idsBy("-requests")).toEqual([3, 1, 2]);
});

test.each([undefined, "", "nothing", "-", "toString"])("%p sorts by creation", (text) => {
  expect(idsBy(text)).toEqual([1, 2, 3]);
});

test("the first click on a column sorts numbers descending and names ascending, the second reverses it", () => {
  const unsorted = parseKeySort(undefined);
  expect(formatSort(nextSort(unsorted, "output", keyColumns))).toBe("-output");
  expect(formatSort(nextSort(unsorted, "name", keyColumns))).toBe("name");
  expect(formatSort(nextSort(parseKeySort("-output"), "output", keyColumns))).toBe("output");
});
