import { expect, test } from "bun:test";
import { keepObjects, mergeRequests } from "../../../console/src/requests/request-list.ts";

const request = (id: number, second: number) => ({
  id,
  ended_at: new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString(),
});

test("lists are merged newest first, each request once and as the same object", () => {
  const [first, second, third] = [request(1, 1), request(2, 3), request(3, 2)];
  const merged = mergeRequests([second], [{ ...second }, third, first]);
  expect(merged).toEqual([second, third, first]);
  expect(merged[0]).toBe(second);
});

test("of requests that ended at the same time, the one that was written later comes first", () => {
  expect(mergeRequests([request(4, 1), request(9, 1)]).map(({ id }) => id)).toEqual([9, 4]);
});

test("a list that was read again keeps the objects that it had", () => {
  const [known, added] = [request(1, 1), request(2, 2)];
  const [first, second] = keepObjects([known], [added, { ...known }]);
  expect(first).toBe(added);
  expect(second).toBe(known);
  for (const corrected of [request(1, 3), { ...known, output_tokens: 5 }])
    expect(keepObjects([known], [corrected])).toEqual([corrected]);
});
