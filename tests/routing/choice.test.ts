import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type ExpectedWork, nothingKnown } from "../../src/routing/affinity.ts";
import { type BackendRow, choose, type RequestToPlace } from "../../src/routing/choice.ts";

const row = (name: string, fields: Partial<BackendRow> = {}): BackendRow => ({
  name,
  spill: false,
  maxConcurrency: undefined,
  inFlight: 0,
  unbegun: 0,
  waitingTokens: 0,
  warmUp: undefined,
  standing: "in",
  ...fields,
});

const anyRequest: RequestToPlace = {
  affinity: "key",
  tried: [],
  mayReturn: false,
  workAt: () => nothingKnown,
  tokens: 0,
};

/** The backend and why, as one text. */
function chosen(rows: readonly BackendRow[], more: Partial<RequestToPlace> = {}): string {
  const choice = choose(rows, { ...anyRequest, ...more });
  return choice === undefined ? "waits" : `${choice.backend} ${choice.reason}`;
}

describe("a request goes", () => {
  const [out, busy, closed] = [{ standing: "out" }, { standing: "busy" }, { standing: "closed" }] as const;
  const full = { maxConcurrency: 2, inFlight: 2 };
  const cases: [string, BackendRow[], string][] = [
    ["to the only backend", [row("a")], "a only"],
    ["where fewest are in flight", [row("a", { inFlight: 3 }), row("b", { inFlight: 2 })], "b load"],
    [
      "where least waits to be read",
      [row("a", { waitingTokens: 12_001, inFlight: 1, unbegun: 1 }), row("b", { inFlight: 4 })],
      "b load",
    ],
    [
      "where fewest are in flight, though those elsewhere have no first byte and little to read",
      [row("a", { waitingTokens: 3000, inFlight: 30, unbegun: 30 }), row("b", { inFlight: 9 })],
      "b load",
    ],
    ["past one that is full", [row("a", full), row("b", { inFlight: 9 })], "b load"],
    ["nowhere while all are full", [row("a", full), row("b", full)], "waits"],
    ["past one that is out", [row("a", out), row("b", { inFlight: 9 })], "b load"],
    ["nowhere while the others are full and one is out", [row("a", out), row("b", full)], "waits"],
    ["to one that is out while none is in", [row("a", out), row("b", closed)], "a load"],
    ["nowhere while all are closed", [row("a", closed), row("b", closed)], "waits"],
    ["past a spill backend", [row("a", { spill: true }), row("b", { inFlight: 9 })], "b load"],
    ["to a spill backend while the others are full", [row("a", { spill: true }), row("b", full)], "a spill"],
    ["to a spill backend while the others are out", [row("a", { spill: true }), row("b", out)], "a spill"],
    [
      "to spill backends that have no others",
      [row("a", { spill: true, inFlight: 1 }), row("b", { spill: true })],
      "b load",
    ],
    ["past one that asked for a pause", [row("a", busy), row("b", { spill: true })], "b spill"],
    ["to one that asked for a pause while the others are full", [row("a", busy), row("b", full)], "a load"],
    ["past one that may be gone", [row("a", { standing: "suspect" }), row("b", { spill: true })], "b spill"],
    ["past one that warms up", [row("a", { warmUp: 1, unbegun: 1 }), row("b", { inFlight: 9 })], "b load"],
    [
      "to one that warms up, once it has a first byte",
      [row("a", { warmUp: 1, inFlight: 1 }), row("b", full)],
      "a load",
    ],
    ["nowhere without backends", [], "waits"],
  ];

  test.each(cases)("%s", (_, rows, expected) => {
    expect(chosen(rows)).toBe(expected);
  });

  const work =
    (tokens: Record<string, number>, reason: ExpectedWork["reason"]) =>
    (backend: string): ExpectedWork =>
      tokens[backend] === undefined
        ? { ...nothingKnown, tokens: 10_000 }
        : { ...nothingKnown, tokens: tokens[backend], reason };

  test.each([
    ["where its conversation was", 0, "a session"],
    ["where its conversation was, though others wait there", 5000, "a session"],
    ["away from where its conversation was, if it would wait longer than all of it takes to read", 11_000, "b load"],
  ])("%s", (_, waitingTokens, expected) => {
    const rows = [row("a", { waitingTokens, inFlight: 1, unbegun: 1 }), row("b")];
    expect(chosen(rows, { workAt: work({ a: 400 }, "session") })).toBe(expected);
  });

  test("where its conversation was, until leaving that costs less than waiting there", () => {
    const workAt = (backend: string): ExpectedWork =>
      backend === "a"
        ? { ...nothingKnown, tokens: 400, reason: "session" }
        : { ...nothingKnown, tokens: 10_000, leaving: 20_000 };
    const at = (waitingTokens: number) => row("a", { waitingTokens, inFlight: 1, unbegun: 1 });
    expect(chosen([at(25_000), row("b")], { workAt })).toBe("a session");
    expect(chosen([at(26_000), row("b")], { workAt })).toBe("b load");
    const choice = choose([at(25_000), row("b")], { ...anyRequest, workAt, tokens: 10_000 });
    expect(choice?.expectation?.elsewhere).toBe(10_000 - 29_000);
  });

  test("where its instructions were", () => {
    expect(chosen([row("a"), row("b")], { workAt: work({ b: 7000 }, "prefix") })).toBe("b prefix");
  });

  test("with what was expected of it there, and at the best of the others", () => {
    const rows = [row("a", { waitingTokens: 3000, inFlight: 1, unbegun: 1 }), row("b", { waitingTokens: 500 })];
    const expectation = (all: BackendRow[], tokens = 10_000) =>
      choose(all, { ...anyRequest, workAt: work({ a: 400 }, "session"), tokens })?.expectation;
    expect(expectation(rows)).toEqual({ tokens: 10_000, toRead: 400, isOwn: true, elsewhere: 500 + 10_000 - 7000 });
    expect(expectation(rows.toReversed())?.elsewhere).toBe(3500);
    expect(expectation([rows[0] ?? row("a"), row("b", { standing: "out" })])?.elsewhere).toBeUndefined();
    expect([expectation(rows, 0), expectation(rows.slice(0, 1))]).toEqual([undefined, undefined]);
  });

  test("elsewhere if it was there, and nowhere if it was at all that are in", () => {
    const tried = ["a"];
    expect(chosen([row("a"), row("b", { inFlight: 9 })], { tried })).toBe("b failover");
    expect(chosen([row("a"), row("b", out)], { tried })).toBe("waits");
  });

  test.each<[what: string, a: Partial<BackendRow>, b: Partial<BackendRow>, to: string]>([
    ["not while another has a place", {}, { inFlight: 9 }, "b failover"],
    ["not while another that asked for a pause has one", {}, busy, "b failover"],
    ["while the others are full", {}, full, "a failover"],
    ["while the others are out", {}, out, "a failover"],
    ["though it asked for a pause", busy, full, "a failover"],
    ["not before a probe has told whether it is up", { standing: "suspect" }, full, "waits"],
    ["not while it is out", out, out, "waits"],
    ["not while it is full", full, full, "waits"],
  ])("back where nothing was sent: %s", (_, a, b, to) => {
    expect(chosen([row("a", a), row("b", b)], { tried: ["a"], mayReturn: true })).toBe(to);
  });

  test("to the same of several that are equal, and only what went to one that is gone goes elsewhere", () => {
    const rows = ["a", "b", "c", "d"].map((name) => row(name));
    const keys = Array.from({ length: 400 }, (_, n) => `key ${n}`);
    const before = keys.map((affinity) => chosen(rows, { affinity }));
    expect(keys.map((affinity) => chosen(rows.toReversed(), { affinity }))).toEqual(before);
    for (const { name } of rows) expect(before.filter((one) => one === `${name} load`).length).toBeGreaterThan(60);
    const after = keys.map((affinity) => chosen(rows.slice(1), { affinity }));
    expect(before.filter((one, n) => one !== after[n] && one !== "a load")).toEqual([]);
  });

  test("to one of those that are in, whatever the table says of their load and work", () => {
    const any = fc.oneof(fc.double(), fc.constantFrom(0, -1, Number.NaN, Infinity, -Infinity));
    const maybe = fc.option(any, { nil: undefined });
    const anyRow = fc.record<BackendRow>({
      name: fc.constantFrom("a", "b", "", "__proto__", "constructor"),
      spill: fc.boolean(),
      maxConcurrency: maybe,
      inFlight: any,
      unbegun: any,
      waitingTokens: any,
      warmUp: maybe,
      standing: fc.constantFrom("in", "busy", "suspect", "out", "closed"),
    });
    const reason = fc.constantFrom<ExpectedWork["reason"]>("session", "prefix", "load");
    const anyWork = fc.record<ExpectedWork>({ tokens: any, readBefore: any, leaving: any, reason });
    fc.assert(
      fc.property(fc.array(anyRow), fc.array(anyWork, { minLength: 1 }), any, (all, works, tokens) => {
        let asked = 0;
        const workAt = () => works[asked++ % works.length] ?? nothingKnown;
        const choice = choose(all, { ...anyRequest, workAt, tokens });
        const chosenRows = all.filter(({ name }) => name === choice?.backend);
        if (choice !== undefined) expect(chosenRows.map(({ standing }) => standing)).not.toEqual(["closed"]);
        const takesNew = ({ standing }: BackendRow): boolean => standing !== "out" && standing !== "closed";
        if (choice !== undefined && all.some(takesNew)) expect(chosenRows.some(takesNew)).toBe(true);
      }),
    );
  });

  test("never to a backend that is closed, full, or was tried, and never waits while one of the others has a place", () => {
    const count = fc.integer({ min: 0, max: 5 });
    const optional = fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined });
    const anyRow = fc.record<BackendRow>({
      name: fc.constantFrom("a", "b", "c", "d", "e"),
      spill: fc.boolean(),
      maxConcurrency: optional,
      inFlight: count,
      unbegun: count,
      waitingTokens: count,
      warmUp: optional,
      standing: fc.constantFrom("in", "busy", "suspect", "out", "closed"),
    });
    const rows = fc.uniqueArray(anyRow, { selector: ({ name }) => name });
    fc.assert(
      fc.property(rows, fc.string(), fc.subarray(["a", "b", "c", "d", "e"]), (all, affinity, tried) => {
        const choice = choose(all, { ...anyRequest, affinity, tried });
        const open = all.filter(
          (one) =>
            one.standing !== "out" &&
            one.standing !== "closed" &&
            !tried.includes(one.name) &&
            one.inFlight < (one.maxConcurrency ?? Infinity) &&
            (one.unbegun ?? 0) < (one.warmUp ?? Infinity),
        );
        if (open.length > 0) expect(open.map(({ name }) => name)).toContain(choice?.backend ?? "none");
        else expect([undefined, "out"]).toContain(all.find(({ name }) => name === choice?.backend)?.standing);
      }),
    );
  });
});
