import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Trace, TracedMessage } from "../../src/domain/cache-loss.ts";
import { createAffinity, type RoutedRequest } from "../../src/routing/affinity.ts";

const affinityOf = () => createAffinity({ entries: 1000, perOwner: 250 });
/** A token has three characters as long as no reports tell. */
const turn = (name: number | undefined, tokens: number, prefix?: number, keyId = 1): RoutedRequest => ({
  keyId,
  model: "m",
  conversation: { name, prefix },
  characters: 3 * tokens,
});

test("a backend reads what a conversation grew by since it was there, and all of it elsewhere", () => {
  const affinity = affinityOf();
  affinity.remember("a", turn(7, 10_000));
  expect(affinity.expect(turn(7, 12_000))("a")).toMatchObject({
    tokens: 2000,
    readBefore: 30_000,
    reason: "session",
  });
  expect(affinity.expect(turn(7, 12_000))("b")).toMatchObject({ tokens: 12_000, reason: "load" });
  expect(affinity.expect(turn(7, 12_000))("a").reason).toBe("session");
});

test("a conversation is where it was last", () => {
  const affinity = affinityOf();
  for (const backend of ["a", "b"]) affinity.remember(backend, turn(7, 10_000));
  expect(affinity.expect(turn(7, 10_000))("a").reason).toBe("load");
  expect(affinity.expect(turn(7, 10_000))("b")).toMatchObject({ tokens: 100, reason: "session" });
});

test("a shorter conversation, such as a compacted one, is still at least a message", () => {
  const affinity = affinityOf();
  affinity.remember("a", turn(7, 90_000));
  expect(affinity.expect(turn(7, 3000))("a")).toMatchObject({ tokens: 100, reason: "session" });
});

test("the agents of a session have a conversation each, and a new one rather begins where the session was", () => {
  const affinity = affinityOf();
  const of = (agent: number, tokens: number): RoutedRequest => ({
    ...turn(7, tokens),
    conversation: { name: 7, agent, prefix: undefined },
  });
  const work = (request: RoutedRequest) => ["a", "b"].map((backend) => affinity.expect(request)(backend));
  affinity.remember("a", of(1, 90_000));
  expect(work(of(2, 10_000))).toMatchObject([
    { tokens: 7000, readBefore: 0, reason: "session" },
    { tokens: 10_000, reason: "load" },
  ]);
  affinity.remember("b", of(2, 10_000));
  expect(work(of(1, 92_000))).toMatchObject([
    { tokens: 2000, readBefore: 270_000, reason: "session" },
    { tokens: 92_000, reason: "load" },
  ]);
  expect(work(of(2, 12_000))[1]).toMatchObject({ tokens: 2000, readBefore: 30_000, reason: "session" });
});

test("a prefix is known for every key, at each backend that had it", () => {
  const affinity = affinityOf();
  affinity.remember("a", turn(7, 10_000, 99));
  affinity.remember("b", turn(8, 10_000, 99));
  const other = turn(9, 10_000, 99, 2);
  expect(["a", "b", "c"].map((backend) => affinity.expect(other)(backend))).toMatchObject([
    { tokens: 7000, reason: "prefix" },
    { tokens: 7000, reason: "prefix" },
    { tokens: 10_000, reason: "load" },
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
  expect(affinity.expect(turn(undefined, 10_000))("a")).toMatchObject({ tokens: 10_000, reason: "load" });
});

describe("a backend that reports what it had cached", () => {
  const [grown, before, tokens] = [turn(7, 100_000), 270_000, 100_000];

  /** After many turns with this share of their input from its cache. */
  function reporting(cachedShare: number, turns = 300) {
    const affinity = affinityOf();
    for (const [backend, name] of [
      ["a", 7],
      ["b", 8],
    ] as const)
      affinity.remember(backend, turn(name, 90_000));
    for (let n = 0; n < turns; n++) affinity.learn("a", grown, before, { tokens, cached: cachedShare * tokens });
    return affinity;
  }

  test.each([
    ["all that it read before", 0.9, 10_000],
    ["a third of it", 0.3, 70_000],
    ["more than there was, which counts as all", 7, 10_000],
  ])("is expected to have as much as of late: %s", (_, cachedShare, expected) => {
    expect(reporting(cachedShare).expect(turn(7, 100_000))("a").tokens).toBeCloseTo(expected, -2);
  });

  test("is expected to have all as long as it reports nothing: nothing cached and nothing reported look the same", () => {
    const affinity = reporting(0);
    expect(affinity.expect(turn(7, 100_000))("a").tokens).toBe(10_000);
    expect(affinity.expect(turn(7, 100_000))("b").leaving).toBe(0);
    affinity.learn("a", grown, before, { tokens, cached: 90_000 });
    for (let n = 0; n < 300; n++) affinity.learn("a", grown, before, { tokens, cached: 0 });
    expect(affinity.expect(turn(7, 100_000))("a").tokens).toBeGreaterThan(99_000);
  });

  test("is not judged by a request of which it had read next to nothing", () => {
    const affinity = reporting(0.9);
    for (let n = 0; n < 300; n++) affinity.learn("a", grown, 300, { tokens, cached: 0 });
    affinity.learn("a", turn(7, 0), 0, { tokens, cached: 0 });
    affinity.learn("never seen", grown, before, { tokens, cached: 50_000 });
    expect(affinity.expect(turn(7, 100_000))("a").tokens).toBeCloseTo(10_000, -2);
  });

  test("keeps its conversations for the longer, the fuller the others are", () => {
    const affinity = reporting(0.9);
    const leavingFor = (backend: string) => affinity.expect(turn(7, 100_000))(backend).leaving;
    expect([leavingFor("a"), leavingFor("b"), leavingFor("c")]).toEqual([0, 200_000, 0]);
    affinity.remember("b", turn(8, 30_000));
    expect(leavingFor("b")).toBeCloseTo(200_000 / 3);
    affinity.forget("b");
    expect(leavingFor("b")).toBe(0);
    expect(affinity.expect(turn(9, 100_000))("b").leaving).toBe(0);
  });

  test("is as full as what it has that others do not, whatever is forgotten to make room", () => {
    const affinity = createAffinity({ entries: 4, perOwner: 2 });
    for (let name = 0; name < 20; name++) affinity.remember("a", turn(name, 50_000));
    for (const name of [30, 31]) affinity.remember("b", turn(name, 50_000, undefined, 2));
    affinity.learn("a", grown, before, { tokens, cached: 90_000 });
    expect(affinity.expect(turn(19, 100_000))("b").leaving).toBe(200_000);
  });

  test("is learnt anew once it was out", () => {
    const affinity = reporting(0.3);
    affinity.forget("a");
    affinity.remember("a", turn(7, 90_000));
    expect(affinity.expect(turn(7, 100_000))("a").tokens).toBe(10_000);
  });
});

describe("a token", () => {
  /** What a backend would have to read of 60,000 characters after so many reports of this input for as many. */
  function tokensAfter(reports: number, tokens: number, model = "m") {
    const affinity = affinityOf();
    const asked = (name: string) => ({ ...turn(7, 20_000), model: name });
    for (let n = 0; n < reports; n++) affinity.learn("a", asked("m"), 0, { tokens, cached: 0 });
    return [affinity.tokensOf(asked(model)), affinity.expect(asked(model))("a").tokens];
  }

  test.each([
    ["three as long as few reports tell", 19, 60_000, "m", 20_000],
    ["what its model's reports tell", 20, 60_000, "m", 60_000],
    ["what those of its model tell, and not of another", 20, 60_000, "n", 20_000],
    ["at most six, as with images", 20, 10, "m", 10_000],
    ["at least half a one", 20, 1_000_000, "m", 120_000],
  ])("has as many characters as is usual: %s", (_, reports, tokens, model, expected) => {
    expect(tokensAfter(reports, tokens, model)).toEqual([expected, expected]);
  });

  test("has as many as of late", () => {
    const affinity = affinityOf();
    const report = (tokens: number, reports: number) => {
      for (let n = 0; n < reports; n++) affinity.learn("a", turn(7, 20_000), 0, { tokens, cached: 0 });
    };
    report(15_000, 5000);
    report(60_000, 1500);
    expect(affinity.tokensOf(turn(7, 20_000))).toBeGreaterThan(59_000);
  });

  test("is not learnt by a name that is too long for one: clients may make names up", () => {
    const affinity = affinityOf();
    const asked = { ...turn(7, 20_000), model: "m".repeat(1000) };
    for (let n = 0; n < 20; n++) affinity.learn("a", asked, 0, { tokens: 60_000, cached: 0 });
    expect(affinity.tokensOf(asked)).toBe(20_000);
  });

  test("is not learnt from what has no body", () => {
    const affinity = affinityOf();
    for (let n = 0; n < 20; n++) affinity.learn("a", turn(7, 0), 0, { tokens: 5000, cached: 0 });
    expect(affinity.tokensOf(turn(7, 20_000))).toBe(20_000);
  });
});

describe("what a turn keeps of the one before", () => {
  const traced = (messages: readonly TracedMessage[], parts: Partial<Trace> = {}): RoutedRequest => ({
    ...turn(7, 0),
    characters: 10_000,
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
    model: fc.constant("m"),
    conversation,
    characters: fc.oneof(number, fc.double({ min: 0, noNaN: true })),
  });
  const backend = fc.constantFrom("a", "b", "", "__proto__");
  const step = fc.oneof(
    fc.record({ kind: fc.constant("remember" as const), backend, request }),
    fc.record({ kind: fc.constant("forget" as const), backend }),
    fc.record({
      kind: fc.constant("learn" as const),
      backend,
      request,
      readBefore: number,
      input: fc.record({ tokens: fc.integer({ min: 1 }), cached: number }),
    }),
  );

  test("a backend is expected to read something, and no more than the request has or a message", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), request, backend, (steps, asked, where) => {
        const affinity = createAffinity({ entries: 5, perOwner: 3 });
        for (const one of steps) {
          if (one.kind === "forget") affinity.forget(one.backend);
          else if (one.kind === "learn") affinity.learn(one.backend, one.request, one.readBefore, one.input);
          else affinity.remember(one.backend, one.request);
        }
        const { tokens, leaving } = affinity.expect(asked)(where);
        expect(leaving).toBeGreaterThanOrEqual(0);
        expect(tokens).toBeGreaterThanOrEqual(0);
        expect(tokens).toBeLessThanOrEqual(Math.max(100, 2 * asked.characters));
      }),
    );
  });
});
