import { expect, test } from "bun:test";
import { coalescePerTick, shareNextRun } from "../../src/time/per-tick.ts";

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

/** Queries that the test ends. */
function startQueries() {
  const begun: { key: string; end: PromiseWithResolvers<number> }[] = [];
  const find = shareNextRun((key: string) => {
    const end = Promise.withResolvers<number>();
    begun.push({ key, end });
    return end.promise;
  });
  return { find, begun, keys: () => begun.map(({ key }) => key).join("") };
}

const pass = () => new Promise(setImmediate);

test("who asks while a query runs shares the next one, which begins after it", async () => {
  const { find, begun, keys } = startQueries();
  const first = find("a");
  const others = [find("a"), find("a"), find("a")];
  await pass();
  expect(keys()).toBe("a");
  begun[0]?.end.resolve(1);
  expect(await first).toBe(1);
  await pass();
  expect(keys()).toBe("aa");
  const last = find("a");
  begun[1]?.end.resolve(2);
  expect(await Promise.all(others)).toEqual([2, 2, 2]);
  await pass();
  begun[2]?.end.resolve(3);
  expect(await last).toBe(3);
  expect(keys()).toBe("aaa");
});

test("other keys do not wait for it", async () => {
  const { find, begun, keys } = startQueries();
  const a = find("a");
  const b = find("b");
  expect(keys()).toBe("ab");
  begun[1]?.end.resolve(2);
  expect(await b).toBe(2);
  begun[0]?.end.resolve(1);
  expect(await a).toBe(1);
});

test("a query that fails fails for those who share it, and for no other", async () => {
  const { find, begun } = startQueries();
  const first = find("a");
  const [next, same] = [find("a"), find("a")];
  begun[0]?.end.reject(new Error("broken"));
  await expect(first).rejects.toThrow("broken");
  await pass();
  begun[1]?.end.reject(new Error("broken too"));
  await expect(next).rejects.toThrow("broken too");
  await expect(same).rejects.toThrow("broken too");
  await pass();
  const later = find("a");
  begun[2]?.end.resolve(3);
  expect(await later).toBe(3);
});
