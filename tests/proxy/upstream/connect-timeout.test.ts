import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { addressOf, type Connect, connectTo, createConnectTimeout } from "../../../src/proxy/upstream/connections.ts";
import { findFreePort } from "../../support/free-port.ts";

describe("a trial connection", () => {
  const deadline = (): AbortSignal => AbortSignal.timeout(20_000);

  test.each(["127.0.0.1", "[::1]"])("reaches a backend at %s", async (host) => {
    using backend = Bun.listen({ hostname: host.replace(/[[\]]/g, ""), port: 0, socket: { data: () => {} } });
    await connectTo(addressOf(`http://${host}:${backend.port}/team`))(deadline());
  });

  test("fails if nothing listens", async () => {
    const connect = connectTo(addressOf(`http://127.0.0.1:${findFreePort()}`));
    await expect(connect(deadline())).rejects.toThrow("ECONNREFUSED");
  });
});

test.each([
  ["http://backend.internal/v1", { host: "backend.internal", port: 80 }],
  ["https://backend.internal", { host: "backend.internal", port: 443 }],
  ["http://[::1]:8000", { host: "::1", port: 8000 }],
])("the address of %s is %p", (url, address) => {
  expect(addressOf(url)).toEqual(address);
});

describe("the timeout", () => {
  let now = 0;
  beforeEach(() => {
    now = 0;
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  async function pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      now += 1_000;
      jest.advanceTimersByTime(1_000);
      for (let step = 0; step < 10; step++) await Promise.resolve();
    }
  }

  const neverAccepted: Connect = () => new Promise(() => {});

  /** @param connecting how many requests have no connection at the end */
  function watchWith(connecting: () => number | undefined, connect = neverAccepted) {
    const timedOut: string[] = [];
    const { watch, onReceived } = createConnectTimeout({
      connect,
      countConnecting: async () => {
        const count = connecting();
        // The probe, which is never accepted, is one more.
        return count === undefined ? undefined : count + 1;
      },
      countOthers: () => 0,
      limitMs: 10_000,
      monotonic: () => now,
    });
    return { timedOut, watch: (name: string) => watch(() => timedOut.push(name)), onReceived };
  }

  test("comes after the limit for each request, if none has a connection", async () => {
    let waiting = 1;
    const { timedOut, watch } = watchWith(() => waiting);
    watch("first");
    await pass(5);
    watch("second");
    waiting = 2;
    await pass(4);
    expect(timedOut).toEqual([]);
    await pass(1);
    expect(timedOut).toEqual(["first"]);
    waiting = 1;
    await pass(4);
    expect(timedOut).toEqual(["first"]);
    await pass(1);
    expect(timedOut).toEqual(["first", "second"]);
  });

  test("spares the oldest requests, as many as have a connection", async () => {
    const { timedOut, watch } = watchWith(() => 2);
    for (const name of ["first", "second", "third", "fourth"]) watch(name);
    await pass(10);
    expect(timedOut).toEqual(["third", "fourth"]);
  });

  test("spares the others once those without a connection have timed out", async () => {
    let waiting = 2;
    const { timedOut, watch } = watchWith(() => waiting);
    for (const name of ["first", "second", "third"]) watch(name);
    await pass(10);
    waiting = 0;
    await pass(60);
    expect(timedOut).toEqual(["second", "third"]);
  });

  test("spares all if some have a connection and the upstream has sent something since", async () => {
    let waiting = 2;
    const { timedOut, watch, onReceived } = watchWith(() => waiting);
    for (const name of ["first", "second", "third"]) watch(name);
    await pass(5);
    onReceived();
    await pass(10);
    expect(timedOut).toEqual([]);
    waiting = 3;
    await pass(1);
    expect(timedOut).toEqual(["first", "second", "third"]);
  });

  test("comes for all if the connections cannot be counted, unless the upstream has sent something", async () => {
    const { timedOut, watch, onReceived } = watchWith(() => undefined);
    watch("first");
    await pass(10);
    expect(timedOut).toEqual(["first"]);
    watch("second");
    onReceived();
    await pass(20);
    expect(timedOut).toEqual(["first"]);
  });

  test.each([
    [2, 2, 0, true],
    [2, 3, 0, false],
    // Two are connecting, of which one is none of these requests.
    [2, 2, 1, false],
    [undefined, 1, 0, false],
  ])(
    "with %p of %i requests connecting, beside %i others, is certain: %p",
    async (connecting, requests, others, expected) => {
      const told: boolean[] = [];
      const { watch } = createConnectTimeout({
        connect: neverAccepted,
        countConnecting: async () => connecting && connecting + 1,
        countOthers: () => others,
        limitMs: 10_000,
        monotonic: () => now,
      });
      for (let request = 0; request < requests; request++) watch((isCertain) => told.push(isCertain));
      await pass(10);
      expect(told.length).toBeGreaterThan(0);
      expect(told).toEqual(told.map(() => expected));
    },
  );

  test("does not come once a trial connection is accepted or refused", async () => {
    for (const connect of [() => Promise.resolve(), () => Promise.reject(new Error("refused"))]) {
      const { timedOut, watch } = watchWith(() => 1, connect);
      watch("first");
      await pass(60);
      expect(timedOut).toEqual([]);
    }
  });

  test("does not come for a request that is no longer watched", async () => {
    const { timedOut, watch } = watchWith(() => 1);
    const stop = watch("first");
    await pass(9);
    stop();
    await pass(60);
    expect(timedOut).toEqual([]);
    expect(jest.getTimerCount()).toBe(0);
  });
});
