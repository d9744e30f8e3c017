import { expect, test } from "bun:test";
import { edenGC } from "bun:jsc";
import fc from "fast-check";
import { createBag } from "../../src/runtime/bag.ts";
import { stillNeeded } from "./still-needed.ts";

test("holds what was added and not removed, however often a removal is called", () => {
  const command = fc.oneof(fc.constant("add" as const), fc.constant("clear" as const), fc.nat({ max: 9 }));
  fc.assert(
    fc.property(fc.array(command, { minLength: 20, maxLength: 60 }), (commands) => {
      const bag = createBag<number>();
      const removals: (() => void)[] = [];
      let expected: number[] = [];
      for (const each of commands) {
        if (each === "clear") {
          bag.clear();
          expected = [];
        } else if (each === "add") {
          expected.push(removals.length);
          removals.push(bag.add(removals.length));
        } else {
          removals[each]?.();
          expected = expected.filter((item) => item !== each);
        }
        expect(bag.size()).toBe(expected.length);
        expect(bag.list().toSorted((a, b) => a - b)).toEqual(expected);
      }
    }),
  );
});

/** How many of 1600 objects that came and went outlive collections of young objects. */
async function survivors(add: (item: object) => () => void): Promise<number> {
  const references: WeakRef<object>[] = [];
  const removals: (() => void)[] = [];
  for (let round = 0; round < 200; round++) {
    for (let n = 0; n < 8; n++) {
      const item = { text: [round, n] };
      references.push(new WeakRef(item));
      removals.push(add(item));
      if (removals.length > 4) removals.shift()?.();
    }
    await new Promise(setImmediate);
    if (round % 10 === 0) edenGC();
  }
  for (const remove of removals.splice(0)) remove();
  for (let n = 0; n < 2; n++) {
    await new Promise(setImmediate);
    edenGC();
  }
  return references.filter((reference) => reference.deref() !== undefined).length;
}

test("what was removed is collected while it is young", async () => {
  expect(await survivors(createBag<object>().add)).toBeLessThan(200);
});

stillNeeded("a Map still keeps what was deleted until a full collection", "src/runtime/bag.ts", async () => {
  const map = new Map<object, number>();
  const add = (item: object) => {
    map.set(item, 1);
    return () => void map.delete(item);
  };
  expect(await survivors(add)).toBeGreaterThan(400);
});
