import { describe, expect, test } from "bun:test";
import { noConversation } from "../../src/domain/backends.ts";
import { Wait } from "../../src/proxy/waiting.ts";
import { backendOf } from "../support/catalog.ts";
import { passTicks } from "../support/event-loop.ts";
import { useFakeTime } from "../support/fake-time.ts";
import { startPlaces, startQueue } from "../support/local-places.ts";
import { rejectionOf } from "../support/rejection.ts";
import { admitting, keyWith } from "./test-queue.ts";

const time = useFakeTime();

type Moved = Pick<Wait, "backend" | "reason"> | undefined;

const moveOn = async (wait: Wait): Promise<Moved> =>
  (await wait.moveOn()) ? { backend: wait.backend, reason: wait.reason } : undefined;

/** Backends of these sizes. */
function start(
  sizes: Readonly<Record<string, number>>,
  { backendWaitMs = 0, timeoutMs = 60_000, maxWaiting = 1000 } = {},
) {
  const candidates = Object.keys(sizes);
  const up = new Set(candidates);
  const backends = candidates.map((name) => backendOf(name, { maxConcurrency: sizes[name] }));
  const probe = async ({ name }: { name: string }) => ({ ok: up.has(name) });
  const places = startPlaces(backends, { backendWaitMs, maxWaiting, monotonic: time.now, probe });
  const { admit, subjectsOf } = admitting();
  const queue = startQueue({ places, hasPlaces: true, admit, timeoutMs, backendWaitMs, monotonic: time.now });
  const client = new AbortController();
  const enter = async (of: readonly string[] = candidates, key?: ReturnType<typeof keyWith>, keyId = 1) => {
    const asker = { keyId, subjects: subjectsOf(key, keyId), path: "/v1/x", startedAt: 0, client: client.signal };
    const wait = new Wait(asker, queue);
    await wait.enter({ model: "m", candidates: of, characters: 0, conversation: noConversation }, undefined);
    return wait;
  };
  /** Its connection is not made. @returns where it went */
  const miss = async (wait: Wait): Promise<Moved> => {
    wait.report({ kind: "unreachable" });
    return moveOn(wait);
  };
  const inFlight = async (): Promise<number[]> => (await places.list()).map((one) => one.inFlight);
  return { enter, miss, up, inFlight, depth: queue.depth, leave: () => client.abort() };
}

/** How often it connects in vain, each time for five seconds, until it moves on no more. */
async function connectionsOf(turn: Wait, miss: (of: Wait) => Promise<Moved>): Promise<number> {
  let connections = 1;
  for (; connections < 20; connections++) {
    const moved = miss(turn);
    await passTicks();
    await time.pass(5000);
    if ((await moved) === undefined) break;
  }
  return connections;
}

describe("a turn", () => {
  test("moves on from backend to backend, never to one that it has been at, and gives back each place", async () => {
    const { enter, miss, inFlight, depth } = start({ a: 1, b: 1, c: 1 });
    const turn = await enter();
    const visited = [turn.backend];
    for (let choice = await miss(turn); choice !== undefined; choice = await miss(turn)) {
      expect(choice).toMatchObject({ backend: turn.backend, reason: "failover" });
      visited.push(turn.backend);
    }
    expect(visited.toSorted()).toEqual(["a", "b", "c"]);
    expect(await inFlight()).toEqual([0, 0, 0]);
    expect(await moveOn(turn)).toBeUndefined();
    turn.leave();
    expect(depth()).toEqual({ waiting: 0, running: 0 });
  });

  test("waits for a place where nothing was sent, and not where a backend was too busy", async () => {
    const { enter, miss, up } = start({ a: 1, b: 1 });
    const other = await enter(["b"]);
    const turn = await enter(["a", "b"]);
    up.delete("a");
    // It may have been but a moment.
    expect(await miss(turn)).toMatchObject({ backend: "a", reason: "failover" });
    const moved = miss(turn);
    await passTicks();
    other.leave();
    expect(await moved).toMatchObject({ backend: "b", reason: "failover" });
    up.add("a");
    await time.pass(30_000);
    const busy = await enter(["a", "b"]);
    busy.report({ kind: "busy", retryAfterMs: undefined });
    expect(await moveOn(busy)).toBeUndefined();
    turn.leave();
    // Not at the next one either, if that refuses the connection.
    const alsoBusy = await enter(["a", "b"]);
    alsoBusy.report({ kind: "busy", retryAfterMs: undefined });
    expect(await moveOn(alsoBusy)).toMatchObject({ reason: "failover" });
    expect(await miss(alsoBusy)).toBeUndefined();
  });

  test("that will not wait takes no place in a full list from one that does", async () => {
    const { enter, depth } = start({ a: 1, b: 1 }, { maxWaiting: 1 });
    await enter(["b"], undefined, 2);
    const refused = rejectionOf(enter(["b"], undefined, 2)).then(() => "refused");
    const busy = await enter(["a", "b"]);
    busy.report({ kind: "busy", retryAfterMs: undefined });
    expect(await moveOn(busy)).toBeUndefined();
    expect(await Promise.race([refused, passTicks().then(() => "waiting")])).toBe("waiting");
    expect(depth().waiting).toBe(1);
  });

  test("has no other place in time, or ends with its client", async () => {
    const { enter, miss, leave, up } = start({ a: 2, b: 1 }, { timeoutMs: 1000 });
    await enter(["b"]);
    const turns = [await enter(["a", "b"]), await enter(["a", "b"])];
    up.delete("a");
    expect(await Promise.all(turns.slice(1).map(miss))).toMatchObject([{ backend: "a" }]);
    const [first, second] = turns.map(miss);
    await time.pass(1000);
    expect(await first).toBeUndefined();
    expect(await second).toBeUndefined();
    up.add("a");
    await time.pass(30_000);
    const third = await enter(["a", "b"]);
    up.delete("a");
    expect(await miss(third)).toMatchObject({ backend: "a" });
    const moved = miss(third);
    await passTicks();
    leave();
    expect(await rejectionOf(moved ?? Promise.resolve())).toMatchObject({ outcome: "client_left" });
  });

  test("waits for the only backend, and keeps its admission", async () => {
    const { enter, miss, up } = start({ a: 5 }, { backendWaitMs: 30_000 });
    const key = keyWith(1);
    const turn = await enter(["a"], key);
    up.clear();
    expect(await miss(turn)).toMatchObject({ backend: "a" });
    const moved = miss(turn);
    await passTicks();
    await time.pass(20_000);
    up.add("a");
    await time.pass(9000);
    expect(await moved).toMatchObject({ backend: "a" });
    expect([key.inFlight(), key.cancelled()]).toEqual([1, 0]);
    turn.leave();
    expect(key.inFlight()).toBe(0);
  });

  test("connects no longer than requests wait for backends where only probes are responded to", async () => {
    const { enter, miss, inFlight } = start({ a: 5 }, { backendWaitMs: 30_000 });
    const turn = await enter();
    expect([await connectionsOf(turn, miss), await inFlight()]).toEqual([7, [0]]);
  });

  test("returns to one whose probes alone are responded to no longer than it waits for a place", async () => {
    const { enter, miss } = start({ a: 1, b: 1 }, { timeoutMs: 30_000 });
    await enter(["b"]);
    const turn = await enter(["a", "b"]);
    expect(await connectionsOf(turn, miss)).toBe(8);
  });

  test("is not refused for its key's places in the moment in which its backend goes out", async () => {
    const { enter, up } = start({ a: 5 }, { backendWaitMs: 30_000 });
    const key = keyWith(1);
    const first = await enter(["a"], key);
    up.clear();
    const second = enter(["a"], key);
    for (let n = 0; n < 2; n++) first.report({ kind: "unreachable" });
    await passTicks();
    first.leave();
    expect(key.asked()).toEqual([true, true]);
    up.add("a");
    await time.pass(3000);
    expect(await second).toMatchObject({ backend: "a", admission: { refusedBy: undefined } });
    expect([key.asked(), key.inFlight()]).toEqual([[true], 1]);
  });

  test("gives its key's place back while no backend is in, and asks again when one is", async () => {
    const { enter, up } = start({ a: 1 }, { backendWaitMs: 30_000 });
    const first = await enter();
    const key = keyWith(1);
    const second = enter(["a"], key, 2);
    await passTicks();
    expect([key.asked(), key.inFlight()]).toEqual([[true], 1]);
    up.clear();
    for (let n = 0; n < 2; n++) first.report({ kind: "unreachable" });
    await passTicks();
    expect([key.inFlight(), key.cancelled()]).toEqual([0, 1]);
    first.leave();
    up.add("a");
    await time.pass(3000);
    expect(await second).toMatchObject({ backend: "a", admission: { refusedBy: undefined } });
    expect([key.asked(), key.inFlight()]).toEqual([[true], 1]);
  });

  test("is refused by the limits as it leaves the room, and gives back its place", async () => {
    const { enter, miss, up, inFlight } = start({ a: 5 }, { backendWaitMs: 30_000 });
    const first = await enter();
    up.clear();
    await miss(first);
    first.report({ kind: "unreachable" });
    first.leave();
    const key = keyWith(1);
    key.refuseBy("tokens_per_day", 3_600_000);
    await passTicks();
    const refused = rejectionOf(enter(["a"], key));
    await passTicks();
    expect(key.asked()).toEqual([]);
    up.add("a");
    await time.pass(3000);
    expect(await refused).toMatchObject({ code: "tokens_per_day" });
    expect(await inFlight()).toEqual([0]);
  });
});
