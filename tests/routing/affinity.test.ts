import { expect, test } from "bun:test";
import { createAffinity, type RoutedRequest } from "../../src/routing/affinity.ts";

const affinityOf = () => createAffinity({ entries: 1000, perOwner: 250 });
const turn = (name: number | undefined, characters: number, prefix?: number, keyId = 1): RoutedRequest => ({
  keyId,
  conversation: { name, prefix },
  characters,
});

test("a backend reads what a conversation grew by since it was there, and all of it elsewhere", () => {
  const affinity = affinityOf();
  affinity.remember("a", turn(7, 10_000));
  expect(affinity.expect(turn(7, 12_000))("a")).toEqual({ characters: 2000, reason: "session" });
  expect(affinity.expect(turn(7, 12_000))("b")).toEqual({ characters: 12_000, reason: "load" });
  expect(affinity.expect(turn(7, 12_000))("a").reason).toBe("session");
});

test("a conversation is where it was last", () => {
  const affinity = affinityOf();
  for (const backend of ["a", "b"]) affinity.remember(backend, turn(7, 10_000));
  expect(affinity.expect(turn(7, 10_000))("a").reason).toBe("load");
  expect(affinity.expect(turn(7, 10_000))("b")).toEqual({ characters: 400, reason: "session" });
});

test("a shorter conversation, such as a compacted one, is still at least a message", () => {
  const affinity = affinityOf();
  affinity.remember("a", turn(7, 90_000));
  expect(affinity.expect(turn(7, 3000))("a")).toEqual({ characters: 400, reason: "session" });
});

test("a prefix is known for every key, at each backend that had it", () => {
  const affinity = affinityOf();
  affinity.remember("a", turn(7, 10_000, 99));
  affinity.remember("b", turn(8, 10_000, 99));
  const other = turn(9, 10_000, 99, 2);
  expect(["a", "b", "c"].map((backend) => affinity.expect(other)(backend))).toEqual([
    { characters: 7000, reason: "prefix" },
    { characters: 7000, reason: "prefix" },
    { characters: 10_000, reason: "load" },
  ]);
});

test("the same name of another key is another conversation", () => {
  const affinity = affinityOf();
  affinity.remember("a", turn(7, 10_000));
  expect(affinity.expect(turn(7, 10_000, undefined, 2))("a").reason).toBe("load");
});

test("what a backend had is forgotten with it, and learnt anew", () => {
  const affinity = affinityOf();
  for (const backend of ["a", "b"]) affinity.remember(backend, turn(backend === "a" ? 7 : 8, 10_000, 99));
  affinity.forget("a");
  expect(affinity.expect(turn(7, 10_000))("a").reason).toBe("load");
  expect(affinity.expect(turn(9, 10_000, 99))("a").reason).toBe("load");
  expect(affinity.expect(turn(9, 10_000, 99))("b").reason).toBe("prefix");
  affinity.remember("a", turn(7, 10_000, 99));
  expect(affinity.expect(turn(7, 10_000))("a").reason).toBe("session");
  affinity.forget("never seen");
});

test("a request without a conversation is remembered nowhere", () => {
  const affinity = affinityOf();
  affinity.remember("a", turn(undefined, 10_000));
  expect(affinity.expect(turn(undefined, 10_000))("a")).toEqual({ characters: 10_000, reason: "load" });
});
