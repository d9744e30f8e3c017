import { expect, test } from "bun:test";
import { createFairQueue, type TurnOf } from "../../src/routing/fair-queue.ts";
import { createRandom } from "../support/random.ts";

/** A queue for one backend. */
function queueOf(places: number, maxWaiting = 1000) {
  const granted: string[] = [];
  const displaced: string[] = [];
  const running = new Set<string>();
  const turnOf = new Map<string, TurnOf>();
  const queue = createFairQueue<string>({
    maxWaiting,
    findPlace: () => (running.size < places ? { backend: "a", reason: "only" } : undefined),
    groupOf: () => ({ group: "", isUrgent: false }),
    onGranted(ticket) {
      granted.push(ticket);
      running.add(ticket);
    },
    onDisplaced: (ticket) => void displaced.push(ticket),
  });
  /** The tickets that got a place since the last call. */
  const taken = (): string[] => granted.splice(0);
  /** The tickets that had to make room since the last call. */
  const refused = (): string[] => displaced.splice(0);
  return {
    /** @param of a key, or who else in which team */
    enter(ticket: string, of: number | TurnOf, waits: boolean) {
      const turn: TurnOf = typeof of === "number" ? [of, of] : of;
      turnOf.set(ticket, turn);
      const entry = queue.enter(ticket, turn, waits);
      if (typeof entry === "string") return entry;
      running.add(ticket);
      return "granted";
    },
    leave(ticket: string) {
      if (running.delete(ticket)) queue.end(turnOf.get(ticket) ?? [0, 0]);
      else queue.leave(ticket);
    },
    taken,
    refused,
  };
}

test("a free place goes to the key with less in flight, then around, and each key keeps its order", () => {
  const queue = queueOf(2);
  for (const ticket of ["a1", "a2", "a3", "a4", "a5"]) queue.enter(ticket, 1, true);
  for (const ticket of ["b1", "b2"]) queue.enter(ticket, 2, true);
  queue.enter("c1", 3, true);
  queue.leave("a1");
  queue.leave("a2");
  expect(queue.taken()).toEqual(["b1", "c1"]);
  queue.leave("b1");
  queue.leave("c1");
  expect(queue.taken()).toEqual(["a3", "b2"]);
  queue.leave("a3");
  queue.leave("b2");
  expect(queue.taken()).toEqual(["a4", "a5"]);
});

test("a team has one turn, however many are in it, and they have turns within it", () => {
  const queue = queueOf(1);
  const team = -9;
  queue.enter("t1", [1, team], true);
  for (const ticket of ["t2", "t3", "t4"]) queue.enter(ticket, [1, team], true);
  queue.enter("u1", [2, team], true);
  queue.enter("v1", [3, team], true);
  for (const ticket of ["a1", "a2"]) queue.enter(ticket, 4, true);
  const order: string[] = [];
  for (let ticket: string | undefined = "t1"; ticket !== undefined; [ticket] = queue.taken()) {
    order.push(ticket);
    queue.leave(ticket);
  }
  expect(order).toEqual(["t1", "a1", "u1", "a2", "v1", "t2", "t3", "t4"]);
});

test("of two places, those who do not flood a key get the next that become free", () => {
  const queue = queueOf(2);
  const [flood, kim, bo] = [-1, -2, -3];
  for (let n = 1; n <= 50; n++) queue.enter(`f${n}`, [flood, flood], true);
  queue.enter("k", [kim, kim], true);
  queue.enter("b", [bo, bo], true);
  queue.leave("f1");
  queue.leave("f2");
  expect(queue.taken()).toEqual(["k", "b"]);
});

test("the highest level that waits comes first, and each eighth place goes to who has waited longest below it", () => {
  const queue = queueOf(1);
  queue.enter("n0", 1, true);
  for (let n = 1; n <= 3; n++) queue.enter(`l${n}`, [2, 2, "low"], true);
  for (let n = 1; n <= 8; n++) queue.enter(`n${n}`, 1, true);
  for (let n = 1; n <= 8; n++) queue.enter(`h${n}`, [3, 3, "high"], true);
  const order: string[] = [];
  for (let ticket: string | undefined = "n0"; ticket !== undefined; [ticket] = queue.taken()) {
    order.push(ticket);
    queue.leave(ticket);
  }
  expect(order.join(" ")).toBe("n0 h1 h2 h3 h4 h5 h6 h7 l1 h8 n1 n2 n3 n4 n5 n6 l2 n7 n8 l3");
});

test("a normal request gets the next place beside 200 low ones that have waited before it", () => {
  const queue = queueOf(8);
  for (let n = 1; n <= 208; n++) queue.enter(`l${n}`, [1, 1, "low"], true);
  for (let n = 1; n <= 20; n++) queue.leave(`l${n}`);
  queue.taken();
  queue.enter("n", 2, true);
  queue.leave("l21");
  expect(queue.taken()).toEqual(["n"]);
});

test("low requests have a list of their own: they displace nobody, and nobody displaces them", () => {
  const queue = queueOf(1, 2);
  queue.enter("n0", 1, true);
  const enter = (ticket: string, key: number, level: TurnOf[2]) => queue.enter(ticket, [key, key, level], true);
  expect([enter("l1", 2, "low"), enter("l2", 2, "low"), enter("l3", 2, "low")]).toEqual(["waiting", "waiting", "full"]);
  expect([enter("n1", 1, "normal"), enter("n2", 1, "normal"), enter("n3", 1, "normal")]).toEqual([
    "waiting",
    "waiting",
    "full",
  ]);
  expect(enter("h1", 3, "high")).toBe("waiting");
  expect(queue.refused()).toEqual(["n2"]);
  expect(enter("l4", 4, "low")).toBe("waiting");
  expect(queue.refused()).toEqual(["l2"]);
});

test("among keys that wait with as many, the one with the most in flight makes room, and only for one with less", () => {
  const queue = queueOf(2, 2);
  for (const ticket of ["a1", "a2", "a3"]) queue.enter(ticket, 1, true);
  queue.enter("b1", 2, true);
  expect(queue.enter("c1", 3, true)).toBe("waiting");
  expect(queue.refused()).toEqual(["a3"]);
  expect([queue.enter("a4", 1, true), queue.enter("d1", 4, true)]).toEqual(["full", "full"]);
  expect(queue.refused()).toEqual([]);
  queue.leave("a1");
  queue.leave("a2");
  expect(queue.taken()).toEqual(["b1", "c1"]);
});

test("what waits for full places is passed over at once when a request ends elsewhere", () => {
  let looks = 0;
  const queue = createFairQueue<string>({
    maxWaiting: 10_000,
    findPlace(ticket) {
      looks += 1;
      return ticket.startsWith("free") ? { backend: "free", reason: "only" } : undefined;
    },
    groupOf(ticket) {
      looks += 1;
      return { group: ticket.split(" ")[0] ?? "", isUrgent: false };
    },
    onGranted() {},
    onDisplaced() {},
  });
  for (let n = 0; n < 1000; n++) queue.enter(`full ${n}`, [n % 10, n % 10], true);
  queue.enter("free", [1, 1], true);
  looks = 0;
  queue.end([1, 1]);
  expect(looks).toBeLessThan(10);
});

test("keys that are idle are forgotten once there are thousands, and none that waits or has a place", () => {
  const queue = queueOf(1);
  queue.enter("a1", 1, true);
  queue.enter("b1", 2, true);
  for (let n = 0; n < 5000; n++) {
    queue.enter(`idle ${n}`, 10 + n, true);
    queue.leave(`idle ${n}`);
  }
  queue.enter("a2", 1, true);
  queue.leave("a1");
  expect(queue.taken()).toEqual(["b1"]);
  queue.leave("b1");
  expect(queue.taken()).toEqual(["a2"]);
});

test("random requests never take more than the places, and none waits while one is free", () => {
  const random = createRandom(7);
  const queue = queueOf(3, 12);
  const [running, waiting] = [new Map<string, number>(), new Map<string, number>()];
  const countOf = (tickets: Map<string, number>, keyId: number): number =>
    [...tickets.values()].filter((one) => one === keyId).length;
  let displacements = 0;
  for (let n = 0; n < 5000; n++) {
    if (random.below(5) < 3) {
      const [ticket, keyId] = [String(n), random.below(5)];
      const most = Math.max(...[0, 1, 2, 3, 4].map((other) => countOf(waiting, other)));
      const wanted = countOf(waiting, keyId) + 1;
      const state = queue.enter(ticket, keyId, true);
      if (state === "granted") running.set(ticket, keyId);
      if (state === "waiting") waiting.set(ticket, keyId);
      if (state === "full") expect(wanted).toBeGreaterThanOrEqual(most);
      for (const displaced of queue.refused()) {
        const from = waiting.get(displaced) ?? -1;
        expect([state, countOf(waiting, from)]).toEqual(["waiting", most]);
        expect(wanted).toBeLessThanOrEqual(most);
        expect(displaced).toBe([...waiting].findLast(([, one]) => one === from)?.[0] ?? "");
        waiting.delete(displaced);
        displacements += 1;
      }
    } else {
      const all = [...running.keys(), ...waiting.keys()];
      const ticket = all.length === 0 ? "none" : random.pick(all);
      queue.leave(ticket);
      running.delete(ticket);
      waiting.delete(ticket);
    }
    for (const ticket of queue.taken()) {
      running.set(ticket, waiting.get(ticket) ?? -1);
      expect(waiting.delete(ticket)).toBe(true);
    }
    expect(running.size).toBeLessThanOrEqual(3);
    expect(waiting.size).toBeLessThanOrEqual(12);
    if (waiting.size > 0) expect(running.size).toBe(3);
  }
  expect(displacements).toBeGreaterThan(100);
});
