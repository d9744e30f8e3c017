import { expect, test } from "bun:test";
import { createSampleSets } from "../../src/gpu-agent/gpu-tool.ts";

/** A test that depends on this silence times out. */
const never = 600_000;

function collect(silenceMs = never) {
  const sets: number[][] = [];
  const arrivals = new Set<() => void>();
  const grouping = createSampleSets(silenceMs, (readings) => {
    sets.push(readings.map(({ index }) => index));
    for (const arrived of arrivals) arrived();
  });
  const add = (...indexes: number[]) => {
    for (const index of indexes) grouping.add({ index, name: "GPU" });
  };
  const nextSet = () => new Promise<void>((resolve) => arrivals.add(resolve));
  return { sets, add, nextSet, end: () => grouping.end() };
}

test("a set ends at the last GPU of the previous round, without a delay", () => {
  const { sets, add } = collect();
  add(0, 1, 2, 0, 1, 2);
  expect(sets).toEqual([
    [0, 1, 2],
    [0, 1, 2],
  ]);
});

test("each line of a single GPU is a set", () => {
  const { sets, add, end } = collect();
  add(0, 0, 0);
  end();
  expect(sets).toEqual([[0], [0], [0]]);
});

test("a set ends after a silence", async () => {
  const { sets, add, nextSet } = collect(5);
  const arrived = nextSet();
  add(0, 1);
  await arrived;
  expect(sets).toEqual([[0, 1]]);
});

test("a GPU that drops out delays its set by no more than the silence", async () => {
  const { sets, add, nextSet } = collect(5);
  add(0, 1, 2, 0, 1, 2);
  const arrived = nextSet();
  add(0, 1);
  await arrived;
  expect(sets.at(-1)).toEqual([0, 1]);
});

test("a round that a silence split is whole again two rounds later", async () => {
  const { sets, add, nextSet } = collect(5);
  let arrived = nextSet();
  add(0, 1);
  await arrived;
  arrived = nextSet();
  add(2, 3);
  await arrived;
  add(0, 1, 2, 3);
  expect(sets).toEqual([
    [0, 1],
    [2, 3],
    [0, 1, 2, 3],
  ]);
});
