import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Trace, TracedMessage } from "../../src/domain/cache-loss.ts";
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

describe("what a turn keeps of the one before", () => {
  const traced = (messages: readonly TracedMessage[], parts: Partial<Trace> = {}): RoutedRequest => ({
    ...turn(7, 10_000),
    conversation: { name: 7, prefix: undefined, trace: { thread: 70, tools: 1, system: 2, messages, ...parts } },
  });
  const before = traced([
    [0, 5000],
    [123_456_789, 100],
  ]);
  const after = [
    [0, 6000],
    [123_456_789, 1000],
    [4_294_967_295, 10],
  ] as const;

  test.each([
    ["at the same backend", "a", traced(after), { share: 0.9, lost: undefined }],
    ["elsewhere", "b", traced(after), { share: 0.9, lost: "elsewhere" }],
    ["with other tools", "a", traced(after, { tools: 9 }), { share: 0.9, lost: "tools_changed" }],
    ["with another system prompt", "a", traced(after, { system: 9 }), { share: 0.9, lost: "system_changed" }],
    ["with all of it changed", "b", traced(after, { tools: 9, system: 9 }), { share: 0.9, lost: "tools_changed" }],
    [
      "with earlier messages changed",
      "a",
      traced([
        [0, 6000],
        [1, 10],
      ]),
      { share: 1, lost: "messages_changed" },
    ],
    ["without messages", "a", traced([]), { share: 1, lost: "messages_changed" }],
    ["of another thread", "a", traced(after, { thread: 71 }), undefined],
    ["without a trace", "a", turn(7, 10_000), undefined],
    ["of another key", "a", { ...traced(after), keyId: 2 }, undefined],
  ] as const)("%s", (_, backend, request, expected) => {
    const affinity = affinityOf();
    affinity.remember("a", before);
    expect(affinity.lastTurn(request, backend)).toEqual(expected);
  });

  test("is not known of a backend that was out", () => {
    const affinity = affinityOf();
    affinity.remember("a", before);
    affinity.forget("a");
    expect(affinity.lastTurn(traced(after), "a")).toBeUndefined();
  });

  test("of the largest numbers, too", () => {
    const affinity = affinityOf();
    for (let life = 0; life < 5000; life++) affinity.forget((affinity.remember("a", before), "a"));
    const largest = { tools: 4_294_967_295, system: 4_294_967_295 };
    affinity.remember("a", traced([[4_294_967_295, 4_294_967_295]], largest));
    expect(affinity.lastTurn(traced(after, largest), "a")).toEqual({ share: 0.999, lost: undefined });
  });
});

describe("whatever is remembered", () => {
  const number = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.maxSafeNat());
  const conversation = fc.record({
    name: fc.option(number, { nil: undefined }),
    prefix: fc.option(number, { nil: undefined }),
  });
  const request = fc.record({
    keyId: number,
    conversation,
    characters: fc.oneof(number, fc.double({ min: 0, noNaN: true })),
  });
  const backend = fc.constantFrom("a", "b", "", "__proto__");
  const step = fc.oneof(
    fc.record({ kind: fc.constant("remember" as const), backend, request }),
    fc.record({ kind: fc.constant("forget" as const), backend }),
  );

  test("a backend is expected to read something, and no more than the request has or a message", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), request, backend, (steps, asked, where) => {
        const affinity = createAffinity({ entries: 5, perOwner: 3 });
        for (const one of steps) {
          if (one.kind === "forget") affinity.forget(one.backend);
          else affinity.remember(one.backend, one.request);
        }
        const { characters } = affinity.expect(asked)(where);
        expect(characters).toBeGreaterThanOrEqual(0);
        expect(characters).toBeLessThanOrEqual(Math.max(400, asked.characters));
      }),
    );
  });
});
