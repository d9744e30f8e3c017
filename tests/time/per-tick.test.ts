import { expect, test } from "bun:test";
import { coalescePerTick } from "../../src/time/per-tick.ts";

/** A question whose answers are numbered. */
function createAsked() {
  const asked: string[] = [];
  const find = coalescePerTick((of: string) => {
    asked.push(of);
    if (of === "broken") throw new Error("no answer");
    return of === "unknown" ? undefined : { id: asked.length };
  });
  return { asked, find };
}

test("all that ask for the same in one turn share the answer, none too", async () => {
  const { asked, find } = createAsked();
  const answers = [find("a"), find("b"), find("unknown")];
  // Microtasks belong to the turn.
  await Promise.resolve();
  answers.push(find("a"), find("unknown"));
  expect(await Promise.all(answers)).toEqual([{ id: 1 }, { id: 2 }, undefined, { id: 1 }, undefined]);
  expect(asked).toEqual(["a", "b", "unknown"]);
});

test("the question is put after the last who gets its answer has come", async () => {
  let state = "before";
  const find = coalescePerTick(() => state);
  const early = find("a");
  state = "after";
  const late = find("a");
  expect(await Promise.all([early, late])).toEqual(["after", "after"]);
});

test("whoever asks when the answer is there, asks again", async () => {
  const { asked, find } = createAsked();
  for (let turn = 1; turn <= 3; turn++) expect(await find("a")).toEqual({ id: turn });
  expect(asked).toEqual(["a", "a", "a"]);
});

test("a question that fails, fails for those who asked, and is put again", async () => {
  const { asked, find } = createAsked();
  const [first, second, other] = await Promise.allSettled([find("broken"), find("broken"), find("a")]);
  expect([first?.status, second?.status, other?.status]).toEqual(["rejected", "rejected", "fulfilled"]);
  await expect(find("broken")).rejects.toThrow("no answer");
  expect(asked).toEqual(["broken", "a", "broken"]);
});
