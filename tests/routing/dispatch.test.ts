import { describe, expect, test } from "bun:test";
import { isChoice, type ListedRequest } from "../../src/domain/admissions.ts";
import { type BackendSign, type Choice, noConversation } from "../../src/domain/backends.ts";
import type { Backend } from "../../src/domain/models.ts";
import { createDispatch } from "../../src/routing/dispatch.ts";
import { backendOf, fileCatalog, replaceableCatalog } from "../support/catalog.ts";
import { passTicks } from "../support/event-loop.ts";
import { useFakeTime } from "../support/fake-time.ts";
import { silentLog } from "../support/local-places.ts";
import { createRandom } from "../support/random.ts";

const unreachable: BackendSign = { kind: "unreachable" };
const time = useFakeTime();

function start(backends: readonly Backend[], { backendWaitMs = 0, maxWaiting = 1000 } = {}) {
  const catalog = replaceableCatalog(fileCatalog(backends, []));
  const granted: string[] = [];
  const changes: string[][] = [];
  const down = new Set<string>();
  const received: { id: string; backend: string; receivedBytes: number }[][] = [];
  const places = new Map<string, string>();
  const held = new Map<string, ReturnType<typeof dispatch.enter>>();
  const running = (name: string): string[] => [...places].flatMap(([ticket, at]) => (at === name ? [ticket] : []));
  let probes = 0;
  function describeEntry(ticket: string, { backend, reason }: Choice): string {
    places.set(ticket, backend);
    return `${ticket} ${backend} ${reason}`;
  }
  const dispatch = createDispatch({
    catalog,
    maxWaiting,
    backendWaitMs,
    async probe({ name }) {
      probes += 1;
      return { ok: !down.has(name) };
    },
    received: async () => received.shift() ?? [],
    clock: time.now,
    monotonic: time.now,
    log: silentLog,
    onChanged: (shut) => void changes.push(shut),
  });
  return {
    ...dispatch,
    leave(ticket: string) {
      places.delete(ticket);
      held.get(ticket)?.leave();
    },
    catalog,
    changes,
    down,
    received,
    probes: () => probes,
    enter(ticket: string, candidates: readonly string[], more: Partial<ListedRequest> = {}): string {
      const request: ListedRequest = {
        keyId: 1,
        waits: true,
        model: "m",
        candidates,
        characters: 0,
        conversation: noConversation,
        tried: [],
        ...more,
      };
      const place = dispatch.enter(request, {
        onGranted: (choice) => void granted.push(describeEntry(ticket, choice)),
        onDisplaced() {},
      });
      held.set(ticket, place);
      const { entry } = place;
      if (isChoice(entry)) return describeEntry(ticket, entry);
      return typeof entry === "string" ? entry : `waits to be read: ${entry.prefillTokens}`;
    },
    report(ticket: string, ...signs: BackendSign[]) {
      for (const sign of signs) held.get(ticket)?.report(sign);
    },
    rankOf: (ticket: string) => held.get(ticket)?.rank(),
    /** Who got a place since the last call. */
    granted: () => granted.splice(0),
    stateOf: (name: string) => dispatch.list().find((one) => one.name === name)?.state,
    /** A request finds it unreachable, and so does the probe. */
    async takeOut(name: string) {
      down.add(name);
      const [ticket] = running(name);
      if (ticket === undefined) return;
      for (let n = 0; n < 2; n++) held.get(ticket)?.report(unreachable);
      await passTicks();
    },
    async bringBack(name: string) {
      down.delete(name);
      await time.pass(30_000);
    },
  };
}

describe("a place that becomes free", () => {
  const [a, b] = [backendOf("a", { maxConcurrency: 1 }), backendOf("b", { maxConcurrency: 1 })];

  test("goes to the fairest request that may use it, wherever it is", () => {
    const { enter, leave, granted } = start([a, b]);
    expect([enter("1", ["a"]), enter("2", ["b"]), enter("3", ["a"]), enter("4", ["b", "a"])]).toEqual([
      "1 a only",
      "2 b only",
      "waiting",
      "waiting",
    ]);
    expect(enter("5", ["b"], { keyId: 2 })).toBe("waiting");
    leave("2");
    // Its key has none in flight.
    expect(granted()).toEqual(["5 b only"]);
    leave("1");
    expect(granted()).toEqual(["3 a only"]);
    leave("3");
    expect(granted()).toEqual(["4 a load"]);
  });

  test("is shown by what waits for it", () => {
    const { enter, list, rankOf } = start([a, b]);
    enter("1", ["a"]);
    enter("2", ["a", "b"]);
    enter("3", ["a"]);
    enter("4", ["b", "a"], { model: "n" });
    enter("5", ["a"], { keyId: 2 });
    expect(list().map(({ name, inFlight, waiting }) => [name, inFlight, waiting])).toEqual([
      ["a", 1, 3],
      ["b", 1, 1],
    ]);
    expect(["2", "3", "4", "5"].map(rankOf)).toEqual([
      undefined,
      { position: 1, length: 2 },
      { position: 1, length: 1 },
      { position: 2, length: 2 },
    ]);
  });

  test("is said to be full since all of its places were taken, although one was free for a moment", async () => {
    const gate = start([backendOf("a", { maxConcurrency: 2 })]);
    const fullSince = () => gate.list()[0]?.fullSince;
    gate.enter("1", ["a"]);
    expect(fullSince()).toBeUndefined();
    gate.enter("2", ["a"]);
    const since = time.now();
    expect(fullSince()).toBe(since);
    await time.pass(60_000);
    gate.enter("3", ["a"]);
    gate.leave("1");
    expect(fullSince()).toBe(since);
    gate.leave("3");
    expect(fullSince()).toBeUndefined();
    await time.pass(500);
    gate.enter("4", ["a"]);
    expect(fullSince()).toBe(since);
    gate.leave("4");
    await time.pass(2000);
    gate.enter("5", ["a"]);
    expect(fullSince()).toBe(time.now());
  });

  test("never stays while somebody may use it, and nobody gets one at a backend that is full, draining or out", async () => {
    const random = createRandom(11);
    const backends = ["a", "b", "c"].map((name, n) => backendOf(name, { maxConcurrency: n + 1, spill: n === 2 }));
    const gate = start(backends, { backendWaitMs: 1000 });
    const [running, waiting] = [new Map<string, string>(), new Map<string, readonly string[]>()];
    const met = { waiting: 0, idle: 0 };
    const isOpen = (name: string): boolean => {
      const inFlight = [...running.values()].filter((one) => one === name).length;
      return gate.stateOf(name) === "in" && inFlight < (backends.find((one) => one.name === name)?.maxConcurrency ?? 0);
    };
    const take = (entry: string): void => {
      const [ticket = "", backend = ""] = entry.split(" ");
      expect(isOpen(backend)).toBe(true);
      running.set(ticket, backend);
      waiting.delete(ticket);
      // None is kept from its place by one that warms up.
      gate.report(ticket, { kind: "responded" }, { kind: "begun" });
    };
    for (let n = 0; n < 800; n++) {
      const step = random.below(200);
      const name = random.pick(["a", "b", "c"]);
      if (step < 70) {
        const candidates = ["a", "b", "c"].filter((one) => one === name || random.below(2) === 0);
        const entry = gate.enter(String(n), candidates, { keyId: random.below(4) });
        if (entry === "waiting") waiting.set(String(n), candidates);
        else take(entry);
      } else if (step < 189) {
        const ticket = random.pick([...running.keys(), ...waiting.keys(), "none"]);
        running.delete(ticket);
        waiting.delete(ticket);
        gate.leave(ticket);
      } else if (step < 198) gate.setDraining(name, random.below(2) === 0);
      else await (gate.stateOf(name) === "in" ? gate.takeOut(name) : gate.bringBack(name));
      for (let more = gate.granted(); more.length > 0; more = gate.granted()) for (const entry of more) take(entry);
      for (const candidates of waiting.values()) expect(candidates.filter(isOpen)).toEqual([]);
      met[waiting.size > 0 ? "waiting" : "idle"] += 1;
    }
    expect(Math.min(met.waiting, met.idle)).toBeGreaterThan(50);
  });
});

describe("a backend", () => {
  const [a, b] = [backendOf("a"), backendOf("b")];

  test("is out once a probe fails too, gets nothing until a probe says that it is up, and then one request first", async () => {
    const { enter, report, stateOf, granted, down, probes, leave } = start([a, b]);
    down.add("a");
    enter("1", ["a"]);
    report("1", unreachable, unreachable);
    expect([stateOf("a"), probes()]).toEqual(["in", 1]);
    await passTicks();
    expect(stateOf("a")).toBe("out");
    expect(["2", "3", "4"].map((ticket) => enter(ticket, ["a", "b"]))).toEqual(["2 b load", "3 b load", "4 b load"]);
    await time.pass(1000);
    down.delete("a");
    await time.pass(2000);
    expect(stateOf("a")).toBe("in");
    leave("1");
    expect(["5", "6", "7"].map((ticket) => enter(ticket, ["a"]))).toEqual(["5 a only", "waiting", "waiting"]);
    report("5", { kind: "responded" });
    expect(granted()).toEqual([]);
    report("5", { kind: "begun" });
    expect(granted()).toEqual(["6 a only", "7 a only"]);
  });

  test("that a probe finds is not out, whatever its requests get", async () => {
    const { enter, report, stateOf, changes, probes } = start([a, b]);
    enter("1", ["a"]);
    const failed: BackendSign = { kind: "failed", status: 503, retryAfterMs: undefined };
    for (let n = 1; n <= 3; n++) {
      report("1", failed, failed, failed);
      await passTicks();
      expect([stateOf("a"), probes()]).toEqual(["in", n]);
    }
    expect(changes).toEqual([]);
  });

  test("that fails is out, whatever it sends with each failure", async () => {
    const { enter, report, leave, stateOf, down } = start([a, b]);
    down.add("a");
    const failed: BackendSign = { kind: "failed", status: 503, retryAfterMs: undefined };
    for (let n = 1; n <= 3; n++) {
      expect(stateOf("a")).toBe("in");
      enter(`${n}`, ["a"]);
      report(`${n}`, failed, { kind: "begun" });
      leave(`${n}`);
      await passTicks();
    }
    expect(stateOf("a")).toBe("out");
  });

  test("that takes requests and is silent is asked for, and out if it hangs, though each client leaves before a timeout", async () => {
    const { enter, report, leave, stateOf, probes, down } = start([a, b]);
    async function sendFor(seconds: number, ...signs: BackendSign[]): Promise<void> {
      for (let second = 0; second < seconds; second++) {
        enter("1", ["a"]);
        await time.pass(1000);
        report("1", ...signs);
        leave("1");
      }
    }
    await sendFor(100, { kind: "responded" }, { kind: "begun" });
    expect(probes()).toBe(0);
    await sendFor(65);
    expect([stateOf("a"), probes()]).toEqual(["in", 2]);
    down.add("a");
    await sendFor(30);
    expect(stateOf("a")).toBe("out");
  });

  test("that is back takes requests, whatever it was sent before that nobody answers any more", async () => {
    const { enter, report, leave, list, granted, takeOut, bringBack } = start([a, b]);
    const characters = 50_000;
    for (const ticket of ["1", "2", "3"]) enter(ticket, ["a"], { characters });
    await takeOut("a");
    await bringBack("a");
    expect([enter("4", ["a"]), enter("5", ["a"])]).toEqual(["4 a only", "waiting"]);
    report("4", { kind: "responded" }, { kind: "begun" });
    expect(granted()).toEqual(["5 a only"]);
    for (const ticket of ["4", "5"]) leave(ticket);
    enter("other", ["b"], { characters: 1 });
    expect(enter("new", ["a", "b"], { characters })).toBe("new a load");
    for (const ticket of ["other", "new"]) leave(ticket);
    for (const ticket of ["1", "2", "3"]) leave(ticket);
    expect(list().map(({ inFlight }) => inFlight)).toEqual([0, 0]);
    enter("6", ["b"], { characters: 1 });
    expect(enter("7", ["a", "b"], { characters })).toBe("7 a load");
  });

  test("that warms up takes no more for the bytes of a failure", () => {
    const { enter, report, leave, granted, setDraining } = start([a, b]);
    setDraining("a", true);
    setDraining("a", false);
    expect(["1", "2", "3"].map((ticket) => enter(ticket, ["a"]))).toEqual(["1 a only", "waiting", "waiting"]);
    report("1", { kind: "busy", retryAfterMs: undefined }, { kind: "begun" });
    expect(granted()).toEqual([]);
    leave("1");
    expect(granted()).toEqual(["2 a only"]);
  });

  test("whose probe fails is not out while its responses flow", async () => {
    const stream = { id: "1", backend: "a", receivedBytes: 10 };
    const other = { ...stream, id: "2", backend: "b" };
    const cases = [
      [[stream], [{ ...stream, receivedBytes: 11 }], "in"],
      [[stream], [stream], "out"],
      [[], [stream], "out"],
      [[stream, other], [stream, { ...other, receivedBytes: 11 }], "out"],
    ] as const;
    for (const [before, after, state] of cases) {
      const { enter, report, stateOf, down, received } = start([a, b]);
      down.add("a");
      received.push([...before], [...after]);
      enter("1", ["a"]);
      report("1", unreachable, unreachable);
      await passTicks();
      expect(stateOf("a")).toBe(state);
    }
  });

  test("that warms up takes more when a request ends without a byte", async () => {
    const { enter, report, leave, granted, setDraining } = start([a, b]);
    setDraining("a", true);
    setDraining("a", false);
    expect(["1", "2", "3"].map((ticket) => enter(ticket, ["a"]))).toEqual(["1 a only", "waiting", "waiting"]);
    // A failure is no sign that it is warm.
    leave("1");
    expect(granted()).toEqual(["2 a only"]);
    report("2", { kind: "responded" });
    leave("2");
    expect(granted()).toEqual(["3 a only"]);
    expect([enter("4", ["a"]), enter("5", ["a"])]).toEqual(["4 a only", "waiting"]);
  });

  test("that is the only one is never out where nobody waits for it", async () => {
    const { enter, report, stateOf, probes } = start([a]);
    enter("1", ["a"]);
    report("1", unreachable, unreachable, unreachable);
    await passTicks();
    expect([stateOf("a"), probes(), enter("2", ["a"])]).toEqual(["in", 0, "2 a only"]);
  });

  test("that is out is tried while all are, unless requests wait for it", async () => {
    const gates = [start([a, b]), start([a, b], { backendWaitMs: 1000 })];
    for (const gate of gates) {
      for (const name of ["a", "b"]) gate.enter(name, [name]);
      for (const name of ["a", "b"]) await gate.takeOut(name);
    }
    expect(gates.map(({ enter }) => enter("1", ["a", "b"]).split(" ").length)).toEqual([3, 1]);
    // It answered: a probe need not wait.
    const [tried] = gates;
    tried?.down.clear();
    tried?.report("1", { kind: "responded" });
    await passTicks();
    expect(
      tried
        ?.list()
        .map(({ state }) => state)
        .toSorted(),
    ).toEqual(["in", "out"]);
  });

  test("that has asked for a pause gets what nobody else takes", async () => {
    const { enter, report, leave } = start([a, backendOf("b", { maxConcurrency: 1 })]);
    enter("1", ["a"]);
    report("1", { kind: "busy", retryAfterMs: 5000 });
    leave("1");
    expect([enter("2", ["a", "b"]), enter("3", ["a", "b"])]).toEqual(["2 b load", "3 a load"]);
    leave("3");
    await time.pass(5001);
    leave("2");
    enter("4", ["b"]);
    expect(enter("5", ["a", "b"])).toBe("5 a load");
  });

  test("that is replaced by another at a new address has nothing cached, and is asked for if it was out", async () => {
    const gate = start([a, b], { backendWaitMs: 60_000 });
    const conversation = { name: 1, prefix: undefined };
    const home = gate.enter("1", ["a", "b"], { conversation, characters: 50_000 }).split(" ")[1] === "a" ? a : b;
    const enter = (ticket: string) => gate.enter(ticket, ["a", "b"], { conversation, characters: 50_000 });
    gate.report("1", { kind: "responded" }, { kind: "begun" });
    gate.leave("1");
    expect(enter("2")).toBe(`2 ${home.name} session`);
    const other = home === a ? b : a;
    gate.catalog.replace(fileCatalog([other, { ...home, url: "http://elsewhere.example" }], []));
    gate.leave("2");
    expect(enter("3")).toEndWith(" load");
    gate.leave("3");

    gate.enter("4", ["a"]);
    await gate.takeOut("a");
    const since = () => gate.list().find(({ name }) => name === "a")?.since;
    const outSince = since();
    expect([gate.stateOf("a"), gate.enter("5", ["a"]), gate.enter("6", ["a"])]).toEqual(["out", "waiting", "waiting"]);
    gate.leave("4");
    gate.down.delete("a");
    await time.pass(1);
    gate.catalog.replace(fileCatalog([b, { ...a, url: "http://third.example" }], []));
    expect(gate.granted()).toEqual([]);
    await passTicks();
    expect([gate.granted(), gate.stateOf("a"), since() === outSince]).toEqual([[`5 a only`], "in", false]);
  });

  test("that the file no longer has ends what it has and is gone, and a new one takes what waits", () => {
    const gate = start([backendOf("a", { maxConcurrency: 1 }), b]);
    gate.enter("1", ["a"]);
    expect(gate.enter("2", ["a", "c"])).toBe("waiting");
    gate.catalog.replace(fileCatalog([b, backendOf("c")], []));
    expect([gate.granted(), gate.stateOf("a"), gate.stateOf("c")]).toEqual([["2 c load"], "draining", "in"]);
    // It began with the old file.
    expect(gate.enter("3", ["a"])).toBe("3 a only");
    gate.leave("1");
    gate.leave("3");
    expect(gate.list().map(({ name }) => name)).toEqual(["b", "c"]);
  });
});

describe("a beginning that many requests have", () => {
  const [three, begun]: [string[], BackendSign[]] = [
    ["a", "b", "c"],
    [{ kind: "responded" }, { kind: "begun" }],
  ];
  const more = { characters: 50_000, conversation: { name: 7, prefix: 8 } };
  const startThree = () => start(three.map((name) => backendOf(name)));
  const tickets = Array.from({ length: 30 }, (_, n) => String(n));
  const counted = (entered: readonly string[]): number[] =>
    three.map((name) => entered.filter((entry) => entry.split(" ")[1] === name).length);

  test.each([
    ["of one conversation", () => more],
    ["of one prompt", (ticket: string) => ({ ...more, conversation: { name: Number(ticket), prefix: 8 } })],
  ])("%s draws none of them to a backend that has read nothing of it", (_, moreOf) => {
    const { enter } = startThree();
    expect(counted(tickets.map((ticket) => enter(ticket, three, moreOf(ticket))))).toEqual([10, 10, 10]);
  });

  test("is where it was read, from its first byte on, and nowhere else if none came", () => {
    const { enter, leave, report } = startThree();
    const [, left = ""] = enter("left", three, more).split(" ");
    leave("left");
    expect(enter("1", [left], more)).toEndWith(" only");
    expect(enter("2", three, { ...more, characters: 60_000 })).toEndWith(" load");
    report("1", ...begun);
    leave("2");
    expect(enter("3", three, { ...more, characters: 60_000 })).toBe(`3 ${left} session`);
  });
});

test("a backend that has restarted has nothing cached, and is told of once for all processes", async () => {
  const { enter, leave, report, hasRestarted } = start([backendOf("a"), backendOf("b")]);
  const turn = (ticket: string): string => {
    const entered = enter(ticket, ["a", "b"], { characters: 50_000, conversation: { name: 7, prefix: undefined } });
    report(ticket, { kind: "responded" }, { kind: "begun" });
    leave(ticket);
    return entered.split(" ").slice(1).join(" ");
  };
  const [at] = turn("1").split(" ");
  expect(turn("2")).toBe(`${at} session`);
  hasRestarted(at ?? "");
  expect(turn("3")).toEndWith(" load");
  await time.pass(30_000);
  hasRestarted(at ?? "");
  expect(turn("4")).toEndWith(" session");
  await time.pass(31_000);
  hasRestarted(at ?? "");
  expect(turn("5")).toEndWith(" load");
});

describe("a backend with max_prefill_tokens", () => {
  // Three characters are a token until reports say otherwise.
  const tokens = (count: number, keyId = 1): Partial<ListedRequest> => ({ characters: 3 * count, keyId });
  const begin = (gate: ReturnType<typeof start>, ticket: string): void =>
    gate.report(ticket, { kind: "responded" }, { kind: "begun" });
  const startOne = (more: Partial<Backend> = {}) => start([backendOf("a", { maxPrefillTokens: 1000, ...more })]);

  test("reads one giant at a time, and beside it small ones up to the same sum", () => {
    const gate = startOne();
    const enter = (ticket: string, count: number) => gate.enter(ticket, ["a"], tokens(count));
    // Without a giant, small ones are never held.
    for (const ticket of ["s1", "s2", "s3"]) expect(enter(ticket, 900)).toBe(`${ticket} a only`);
    for (const ticket of ["s1", "s2", "s3"]) begin(gate, ticket);
    expect(enter("g1", 60_000)).toBe("g1 a only");
    expect(enter("g2", 50_000)).toBe("waits to be read: 50000");
    expect(enter("s4", 900)).toBe("s4 a only");
    expect(enter("s5", 800)).toBe("waits to be read: 800");
    expect(gate.list()).toMatchObject([{ waiting: 2, waitingForPrefill: 2 }]);
    // It passes one that does not fit.
    expect(enter("s6", 100)).toBe("s6 a only");
    begin(gate, "s4");
    expect(gate.granted()).toEqual(["s5 a only"]);
    begin(gate, "g1");
    expect(gate.granted()).toEqual(["g2 a only"]);
  });

  test("tells those that wait for a place from those that wait until another is read", () => {
    const gate = start([
      backendOf("a", { maxPrefillTokens: 1000, maxConcurrency: 2 }),
      backendOf("b", { maxConcurrency: 1 }),
    ]);
    const seen = () => gate.list().map(({ name, waiting, waitingForPrefill }) => [name, waiting, waitingForPrefill]);
    gate.enter("g1", ["a"], tokens(60_000));
    gate.enter("g2", ["a"], tokens(60_000));
    gate.enter("other", ["b"]);
    gate.enter("more", ["b"]);
    expect(seen()).toEqual([
      ["a", 1, 1],
      ["b", 1, 0],
    ]);
    // Its last place is taken.
    gate.enter("small", ["a"], tokens(10));
    expect(seen()).toEqual([
      ["a", 1, 0],
      ["b", 1, 0],
    ]);
  });

  test("gives a waiting giant the room before small ones, whatever the turn, and within its priority", () => {
    const gate = startOne();
    const enter = (ticket: string, count: number, more: Partial<ListedRequest> = {}) =>
      gate.enter(ticket, ["a"], { ...tokens(count), ...more });
    enter("g1", 60_000);
    enter("s0", 1000, { keyId: 9 });
    enter("s1", 1000, { keyId: 2 });
    enter("g2", 50_000);
    enter("high", 500, { keyId: 3, priority: "high" });
    gate.leave("g1");
    expect(gate.granted()).toEqual(["high a only", "g2 a only"]);
    // It ends before it was read.
    gate.leave("g2");
    expect(gate.granted()).toEqual(["s1 a only"]);
  });

  test("never holds the turn of a conversation that it has cached", () => {
    const gate = startOne();
    const warm = { characters: 300_000, conversation: { name: 7, prefix: undefined } };
    gate.enter("1", ["a"], warm);
    begin(gate, "1");
    gate.leave("1");
    expect(gate.enter("g", ["a"], tokens(60_000))).toBe("g a only");
    expect(gate.enter("2", ["a"], { ...warm, characters: 301_000 })).toBe("2 a only");
  });

  test("sends a giant to another that reads none", () => {
    const gate = start([backendOf("a", { maxPrefillTokens: 1000 }), backendOf("b", { maxPrefillTokens: 1000 })]);
    const enter = (ticket: string) => gate.enter(ticket, ["a", "b"], tokens(60_000)).split(" ")[1];
    expect(new Set([enter("1"), enter("2")])).toEqual(new Set(["a", "b"]));
    expect(enter("3")).toBe("to");
  });
});
