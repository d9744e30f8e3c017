import { describe, expect, test } from "bun:test";
import { passTicks } from "../support/event-loop.ts";
import { useFakeTime } from "../support/fake-time.ts";
import type { KeyId } from "../../src/domain/keys.ts";
import { type KeyInDatabase, keyWith, startTestQueue } from "./test-queue.ts";

const timeoutMs = 30_000;
/** The longest pause between two times of asking. */
const pollMs = 250;
const [key, otherKey]: [KeyId, KeyId] = [1, 2];

describe("a request over the places of its key", () => {
  const time = useFakeTime();
  const startQueue = (options: Partial<Parameters<typeof startTestQueue>[0]> = {}) =>
    startTestQueue({ maxWaiting: 1000, timeoutMs, monotonic: time.now, ...options });

  test("runs within a quarter of a second when one of its key ends in another instance", async () => {
    const [queue, limits] = [startQueue(), keyWith(1)];
    await limits.ask(true);
    const waits = await queue.send(key, 0, limits);
    await time.pass(5000);
    expect(waits.state()).toBe("waiting");
    limits.endElsewhere();
    await time.pass(pollMs);
    expect(waits.state()).toBe("running");
  });

  test("leaves a place for a moment to others that serve the key too, after a request of two seconds", async () => {
    const [queue, limits] = [startQueue({ hasOthers: () => true }), keyWith(1)];
    const [first, second] = [await queue.send(key, 0, limits), await queue.send(key, 0, limits)];
    await time.pass(2000);
    first.end();
    await time.pass(99);
    expect([second.state(), limits.inFlight()]).toEqual(["waiting", 0]);
    await time.pass(1);
    expect([second.state(), limits.inFlight()]).toEqual(["running", 1]);
  });

  test("goes on within a quarter of a second when another instance had the place that was left to it", async () => {
    const [queue, limits] = [startQueue({ hasOthers: () => true }), keyWith(1)];
    const first = await queue.send(key, 0, limits);
    const second = await queue.send(key, 0, limits);
    await time.pass(2000);
    first.end();
    await limits.ask(true);
    await time.pass(1000);
    expect(second.state()).toBe("waiting");
    limits.endElsewhere();
    await time.pass(pollMs);
    expect(second.state()).toBe("running");
  });

  test("asks again with the others of its key, as many as there can be places, and not more often than 20 times a second", async () => {
    const [queue, limits] = [startQueue(), keyWith(3)];
    for (let n = 0; n < 3; n++) await limits.ask(true);
    const many = [];
    for (let n = 0; n < 10; n++) many.push(await queue.send(key, 0, limits));
    limits.asked();
    for (let passed = 0; passed < 1000; passed += 10) {
      await time.pass(10);
      expect([0, 3]).toContain(limits.asked().length);
    }
    for (let n = 0; n < 3; n++) limits.endElsewhere();
    await time.pass(pollMs);
    // In the order in which they came.
    expect(many.map(({ state }) => state())).toEqual(many.map((_, n) => (n < 3 ? "running" : "waiting")));
  });

  test("lines up behind those of its key that wait, without asking", async () => {
    const [queue, limits] = [startQueue(), keyWith(1)];
    const first = await queue.send(key, 0, limits);
    const second = await queue.send(key, 0, limits);
    limits.asked();
    const third = await queue.send(key, 0, limits);
    expect(limits.asked()).toEqual([]);
    first.end();
    await passTicks();
    expect([second.state(), third.state()]).toEqual(["running", "waiting"]);
    second.end();
    await passTicks();
    expect(third.state()).toBe("running");
  });

  test("of low priority leaves the place to normal ones of its key that wait, until its own time is over", async () => {
    const [queue, limits] = [startQueue(), keyWith(1)];
    const first = await queue.send(key, 0, limits);
    const low = await queue.send(key, 0, limits, "low");
    const normal = await queue.send(key, 0, limits);
    const late = await queue.send(key, 0, limits, "low");
    first.end();
    await time.pass(pollMs);
    expect([low, normal, late].map(({ state }) => state())).toEqual(["waiting", "running", "waiting"]);
    normal.end();
    await time.pass(pollMs);
    expect([low, late].map(({ state }) => state())).toEqual(["running", "waiting"]);
  });

  test("does not line up behind those that came under another limit", async () => {
    const [queue, limits] = [startQueue(), keyWith(1)];
    await limits.ask(true);
    const before = await queue.send(key, 0, limits);
    const after = await queue.send(key, 0, keyWith(2));
    expect([before.state(), after.state()]).toEqual(["waiting", "running"]);
  });

  test("is refused if too many wait, and makes room for one of another key", async () => {
    const [queue, limits, others] = [startQueue({ maxWaiting: 2 }), keyWith(1), keyWith(1)];
    await limits.ask(true);
    await others.ask(true);
    const [first, second] = [await queue.send(key, 0, limits), await queue.send(key, 0, limits)];
    expect((await queue.send(key, 0, limits)).state()).toBe("queue_full");
    const other = await queue.send(otherKey, 0, others);
    expect([first.state(), second.state(), other.state()]).toEqual(["waiting", "queue_full", "waiting"]);
    expect(queue.depth().waiting).toBe(2);
  });

  test("gives back its place if it makes room for another key at the moment in which it is given one", async () => {
    const [queue, limits, others] = [startQueue({ maxWaiting: 2 }), keyWith(2), keyWith(1)];
    await others.ask(true);
    for (let n = 0; n < 2; n++) await limits.ask(true);
    // All are answered together, as those of a batch are.
    let answered = Promise.resolve();
    const inBatch = (of: KeyInDatabase): KeyInDatabase => ({
      ...of,
      async ask(mayWait) {
        await answered;
        return of.ask(mayWait);
      },
    });
    const [first, second] = [await queue.send(key, 0, inBatch(limits)), await queue.send(key, 0, inBatch(limits))];
    const answer = Promise.withResolvers<void>();
    answered = answer.promise;
    for (let n = 0; n < 2; n++) limits.endElsewhere();
    await time.pass(pollMs);
    const other = await queue.send(otherKey, 0, others);
    answer.resolve();
    await passTicks();
    expect([first.state(), second.state(), other.state()]).toEqual(["running", "queue_full", "waiting"]);
    expect([limits.inFlight(), limits.cancelled()]).toEqual([1, 1]);
  });

  test("leaves the list with its client, at once, and gives back what it is given after that", async () => {
    const [queue, limits] = [startQueue({ maxWaiting: 1 }), keyWith(1)];
    const first = await queue.send(key, 0, limits);
    const gone = await queue.send(key, 0, limits);
    // It asks now, and leaves before the answer.
    first.end();
    gone.leave();
    await passTicks();
    expect([gone.state(), limits.inFlight(), limits.cancelled(), queue.depth().waiting]).toEqual([
      "client_left",
      0,
      1,
      0,
    ]);
    expect((await queue.send(key, 0, limits)).state()).toBe("running");
    expect((await queue.send(key, 0, limits)).state()).toBe("waiting");
  });

  test("asks as often while others of its key come and leave", async () => {
    const [queue, limits] = [startQueue(), keyWith(1)];
    await limits.ask(true);
    const first = await queue.send(key, 0, limits);
    limits.endElsewhere();
    for (let passed = 0; passed < pollMs; passed += 25) {
      const other = await queue.send(key, 0, limits);
      await time.pass(25);
      other.leave();
      await passTicks();
    }
    expect(first.state()).toBe("running");
  });

  test("ends with its key, with the program, or by an administrator", async () => {
    const [queue, limits] = [startQueue(), keyWith(1)];
    await limits.ask(true);
    const all = [await queue.send(key, 7, limits), await queue.send(key, 5, limits), await queue.send(key, 7, limits)];
    all[0]?.endByAdmin();
    queue.endKey(key, 5);
    queue.stop();
    await passTicks();
    expect(all.map(({ state }) => state())).toEqual(["ended_by_admin", "key_revoked", "shutting_down"]);
    limits.endElsewhere();
    await time.pass(1000);
    expect([limits.inFlight(), queue.depth().waiting]).toEqual([0, 0]);
  });

  test("waits in the same list for a place at the backend, and keeps its turn", async () => {
    const [queue, limits] = [startQueue({ places: 1, maxWaiting: 2 }), keyWith(1)];
    const running = await queue.send(otherKey);
    await limits.ask(true);
    const first = await queue.send(key, 0, limits);
    const second = await queue.send(otherKey);
    limits.endElsewhere();
    await time.pass(pollMs);
    // It has its key's place now.
    expect([first.state(), limits.inFlight(), queue.depth().waiting]).toEqual(["waiting", 1, 2]);
    running.end();
    await passTicks();
    expect([first.state(), second.state()]).toEqual(["running", "waiting"]);
  });

  test.each([
    ["the queue refuses", { maxWaiting: 0 }, "queue_full"],
    ["the backend has no place for", { maxWaiting: 1 }, "queue_timeout"],
  ])("that %s gives back what it was given, the request too", async (_, options, state) => {
    const [queue, limits] = [startQueue({ places: 1, ...options }), keyWith(5)];
    await queue.send(otherKey);
    const refused = await queue.send(key, 0, limits);
    await time.pass(timeoutMs);
    expect([refused.state(), limits.inFlight(), limits.cancelled()]).toEqual([state, 0, 1]);
  });
});

describe("a request that a limit of a minute refuses", () => {
  const time = useFakeTime();

  test("waits if it may be admitted within 1.5 seconds, and is refused at once if not", async () => {
    const queue = startTestQueue({ maxWaiting: 10, timeoutMs, monotonic: time.now });
    const limits = keyWith(10);
    limits.refuseBy("requests_per_minute", 1501);
    expect((await queue.send(key, 0, limits)).state()).toBe("requests_per_minute");
    limits.refuseBy("requests_per_minute", 1000);
    const soon = await queue.send(key, 0, limits);
    await time.pass(1000);
    expect(soon.state()).toBe("waiting");
    limits.refuseBy(undefined);
    await time.pass(pollMs);
    expect(soon.state()).toBe("running");
  });

  test("is refused by that limit if too many wait", async () => {
    const queue = startTestQueue({ maxWaiting: 0, timeoutMs, monotonic: time.now });
    const limits = keyWith(10);
    limits.refuseBy("tokens_per_minute", 1000);
    expect([(await queue.send(key, 0, limits)).state(), limits.asked()]).toEqual(["tokens_per_minute", [true, false]]);
  });

  test("is refused after 1.5 seconds, and as soon as it is known to take longer", async () => {
    const queue = startTestQueue({ maxWaiting: 10, timeoutMs, monotonic: time.now });
    const limits = keyWith(10);
    limits.refuseBy("tokens_per_minute", 1000);
    const late = await queue.send(key, 0, limits);
    await time.pass(1499);
    expect(late.state()).toBe("waiting");
    await time.pass(1);
    expect([late.state(), limits.asked().at(-1)]).toEqual(["tokens_per_minute", false]);
    const known = await queue.send(key, 0, limits);
    limits.refuseBy("tokens_per_day", 3_600_000);
    await time.pass(pollMs);
    expect(known.state()).toBe("tokens_per_day");
  });
});
