import { expect, test } from "bun:test";
import { coalescePerTick } from "../../src/time/per-tick.ts";

/** A query with numbered results. */
function createQuery() {
  const queried: string[] = [];
  const find = coalescePerTick((of: string) => {
    queried.push(of);
    if (of === "broken") throw new Error("failed");
    return of === "unknown" ? undefined : { id: queried.length };
  });
  return { queried, find };
}

test("callers with the same key in one tick share a result, also a missing one", async () => {
  const { queried, find } = createQuery();
  const results = [find("a"), find("b"), find("unknown")];
  // Microtasks belong to the tick.
  await Promise.resolve();
  results.push(find("a"), find("unknown"));
  expect(await Promise.all(results)).toEqual([{ id: 1 }, { id: 2 }, undefined, { id: 1 }, undefined]);
  expect(queried).toEqual(["a", "b", "unknown"]);
});

test("the query runs after the last caller that shares its result", async () => {
  let state = "before";
  const find = coalescePerTick(() => state);
  const early = find("a");
  state = "after";
  const late = find("a");
  expect(await Promise.all([early, late])).toEqual(["after", "after"]);
});

test("a caller after the result runs a new query", async () => {
  const { queried, find } = createQuery();
  for (let id = 1; id <= 3; id++) expect(await find("a")).toEqual({ id });
  expect(queried).toEqual(["a", "a", "a"]);
});

test("a failed query fails for its callers only, and is not kept", async () => {
  const { queried, find } = createQuery();
  const [first, second, other] = await Promise.allSettled([find("broken"), find("broken"), find("a")]);
  expect([first?.status, second?.status, other?.status]).toEqual(["rejected", "rejected", "fulfilled"]);
  await expect(find("broken")).rejects.toThrow("failed");
  expect(queried).toEqual(["broken", "a", "broken"]);
});
