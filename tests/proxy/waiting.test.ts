import { describe, expect, test } from "bun:test";
import { passTicks } from "../support/event-loop.ts";
import { useFakeTime } from "../support/fake-time.ts";
import type { KeyId } from "../../src/domain/keys.ts";
import { startTestQueue } from "./test-queue.ts";

const timeoutMs = 30_000;
const [busyKey, otherKey]: [KeyId, KeyId] = [1, 2];

describe("a request that waits for a place at the backend", () => {
  const time = useFakeTime();
  const startQueue = (options: { places: number; maxWaiting: number }) =>
    startTestQueue({ ...options, timeoutMs, monotonic: time.now });

  test("of a key with one request at a time passes 200 that another key sent at once", async () => {
    const queue = startQueue({ places: 8, maxWaiting: 1000 });
    const many = await Promise.all(Array.from({ length: 200 }, () => queue.send(busyKey)));
    expect(queue.depth()).toEqual({ waiting: 192, running: 8 });
    const running = (): number => many.filter(({ state }) => state() === "running").length;
    for (let n = 0; n < 4; n++) {
      const other = await queue.send(otherKey);
      expect(other.state()).toBe("waiting");
      // One of the others ends, and its place becomes free.
      many[n]?.end();
      await passTicks();
      expect(other.state()).toBe("running");
      expect(running()).toBe(8 + n);
      // Then the place goes back to the others.
      other.end();
      await passTicks();
      expect(running()).toBe(9 + n);
      expect(queue.depth().running).toBe(8);
    }
    // In the order in which they were sent.
    expect(many.map(({ state }) => state())).toEqual([
      ...Array.from({ length: 12 }, () => "running"),
      ...Array.from({ length: 188 }, () => "waiting"),
    ]);
  });

  test("is refused if too many wait", async () => {
    const queue = startQueue({ places: 1, maxWaiting: 1 });
    const first = await queue.send(busyKey);
    const second = await queue.send(busyKey);
    const third = await queue.send(busyKey);
    expect([first.state(), second.state(), third.state()]).toEqual(["running", "waiting", "queue_full"]);
    first.end();
    await passTicks();
    expect(second.state()).toBe("running");
  });

  test("makes room for one of another key, and that one keeps its turn", async () => {
    const queue = startQueue({ places: 1, maxWaiting: 1 });
    const first = await queue.send(busyKey);
    const displaced = await queue.send(busyKey);
    const other = await queue.send(otherKey);
    expect([displaced.state(), other.state()]).toEqual(["queue_full", "waiting"]);
    expect((await queue.send(busyKey)).state()).toBe("queue_full");
    first.end();
    await passTicks();
    expect(other.state()).toBe("running");
    expect(queue.depth()).toEqual({ waiting: 0, running: 1 });
  });

  test("is refused after the timeout, and not a moment sooner, and takes no place then", async () => {
    const queue = startQueue({ places: 1, maxWaiting: 10 });
    const first = await queue.send(busyKey);
    const second = await queue.send(busyKey);
    await time.pass(1000);
    const third = await queue.send(busyKey);
    await time.pass(timeoutMs - 1001);
    expect(second.state()).toBe("waiting");
    await time.pass(1);
    expect([second.state(), third.state()]).toEqual(["queue_timeout", "waiting"]);
    first.end();
    await passTicks();
    expect(third.state()).toBe("running");
    // One that has a place may take longer.
    await time.pass(10 * timeoutMs);
    expect(third.state()).toBe("running");
    third.end();
    expect(queue.depth()).toEqual({ waiting: 0, running: 0 });
  });

  test("leaves the queue with its client", async () => {
    const queue = startQueue({ places: 1, maxWaiting: 1 });
    const first = await queue.send(busyKey);
    const gone = await queue.send(busyKey);
    gone.leave();
    await passTicks();
    expect(gone.state()).toBe("client_left");
    const next = await queue.send(busyKey);
    expect(next.state()).toBe("waiting");
    first.end();
    await passTicks();
    expect(next.state()).toBe("running");
  });

  test("ends when an administrator ends it, and leaves its turn to the next one", async () => {
    const queue = startQueue({ places: 1, maxWaiting: 1 });
    const first = await queue.send(busyKey);
    const ended = await queue.send(busyKey);
    ended.endByAdmin();
    await passTicks();
    expect(ended.state()).toBe("ended_by_admin");
    const next = await queue.send(busyKey);
    expect(next.state()).toBe("waiting");
    // Once it runs, it is ended elsewhere.
    first.endByAdmin();
    await passTicks();
    expect([first.state(), next.state()]).toEqual(["running", "waiting"]);
  });

  test("ends with its key, if it had begun by then", async () => {
    const queue = startQueue({ places: 1, maxWaiting: 10 });
    await queue.send(busyKey);
    const [before, after, other] = [
      await queue.send(busyKey, 5),
      await queue.send(busyKey, 6),
      await queue.send(otherKey),
    ];
    queue.endKey(busyKey, 5);
    await passTicks();
    expect([before.state(), after.state(), other.state()]).toEqual(["key_revoked", "waiting", "waiting"]);
  });

  test("ends when the program stops, and the one that runs goes on", async () => {
    const queue = startQueue({ places: 1, maxWaiting: 10 });
    const [first, second] = [await queue.send(busyKey), await queue.send(otherKey)];
    queue.stop();
    await passTicks();
    expect([first.state(), second.state()]).toEqual(["running", "shutting_down"]);
  });
});
