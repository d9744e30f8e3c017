import { expect, test } from "bun:test";
import { type Admissions, createAdmissions } from "../../src/admission/admission.ts";
import { noLimits } from "../../src/store/keys/rules.ts";
import type { LeaseBatch, LimitStore } from "../../src/store/limits/contract.ts";
import { onEachEngine } from "../store/each-engine.ts";
import { createKeys, memoryLog, usageIncrement } from "../store/test-store.ts";
import { pollUntil } from "../support/poll-until.ts";
import { createRandom } from "../support/random.ts";
import type { KeyLimits } from "../../src/domain/keys.ts";
import type { Admission } from "../../src/domain/admissions.ts";

/** 500 ms before the end of a second. */
const start = Date.parse("2026-05-30T20:00:00.500+09:00");
const limits: KeyLimits = { ...noLimits, requests_per_minute: 100_000, tokens_per_minute: 10_000_000 };

onEachEngine(({ openTestStore }) => {
  async function open() {
    const time = { now: start };
    const opened = await openTestStore(() => time.now);
    await createKeys(opened.store, ["a"]);
    const batches: LeaseBatch[] = [];
    const recording: LimitStore = {
      ...opened.store.limits,
      take(batch) {
        batches.push(batch);
        return opened.store.limits.take(batch);
      },
    };
    const all: Admissions[] = [];
    return {
      time,
      batches,
      store: opened.store,
      /** Another process. */
      process(store = recording) {
        const monotonic = () => performance.now() + (time.now - start);
        const options = { store, monotonic, clock: () => time.now, log: memoryLog().log };
        const admissions = createAdmissions(options);
        all.push(admissions);
        return admissions;
      },
      /** What a response does. */
      async count(admission: Admission | undefined, inputTokens: number) {
        const settled = admission?.handOver();
        const minute = Math.floor(time.now / 60_000);
        const sums = { keyId: 1, minute, lastClosedAt: time.now, inputTokens, outputTokens: 0 };
        const ended = settled === undefined ? [] : [settled];
        await opened.store.usage.add([usageIncrement(sums)], undefined, [], undefined, ended);
      },
      load: async () => (await opened.store.limits.listLoads([1]))[0],
      async [Symbol.asyncDispose]() {
        for (const one of all) await one.close();
        await opened[Symbol.asyncDispose]();
      },
    };
  }

  async function admitTimes(admissions: Admissions, times: number, rules = limits, tokens = 10): Promise<Admission[]> {
    const results: Admission[] = [];
    for (let sent = 0; sent < times; sent++) results.push(await admissions.admit([{ id: 1, limits: rules }], tokens));
    return results;
  }

  test("many requests of a second share transactions, and what was spare counts no more after it", async () => {
    await using opened = await open();
    const process = opened.process();
    const results = await admitTimes(process, 500);
    expect(results.every(({ refusedBy }) => refusedBy === undefined)).toBe(true);
    expect(opened.batches.length).toBeLessThan(28);
    opened.time.now += 1000;
    await pollUntil(async () => (await opened.load())?.reserved === 5000);
    expect(await opened.load()).toMatchObject({ minuteRequests: 500 });
    // The first one held its own tokens, and the last one was spare.
    for (const one of [results[0], results.at(-1)]) await opened.count(one, 7);
    for (const one of results) one.end();
    await pollUntil(async () => (await opened.load())?.inFlight === 0);
    expect(await opened.load()).toMatchObject({ minuteRequests: 500, reserved: 0, minuteTokens: 14, dayTokens: 14 });
  });

  test("what is spare in a second that begins before the last one is cleared is given back too", async () => {
    await using opened = await open();
    const process = opened.process();
    await admitTimes(process, 40);
    opened.time.now += 1000;
    await admitTimes(process, 40);
    // Ten are spare in this second, and those of the last one are no more.
    await pollUntil(async () => (await opened.load())?.reserved === 900);
    opened.time.now += 1000;
    await pollUntil(async () => (await opened.load())?.reserved === 800);
  });

  test("of a key that sends few requests in a second exactly these count", async () => {
    await using opened = await open();
    const process = opened.process();
    for (let second = 1; second <= 3; second++) {
      const results = await admitTimes(process, 16);
      expect(await opened.load()).toMatchObject({ minuteRequests: second * 16, inFlight: 16, reserved: 160 });
      for (const one of results) one.end();
      await pollUntil(async () => (await opened.load())?.inFlight === 0);
      opened.time.now += 1000;
    }
  });

  test("a key that was busy in the second before asks for many at once", async () => {
    await using opened = await open();
    const process = opened.process();
    await admitTimes(process, 300);
    for (const count of [17, 1]) {
      opened.time.now += 1000;
      const before = opened.batches.length;
      await admitTimes(process, count);
      const asked = opened.batches
        .slice(before)
        .filter(({ requests }) => requests.some((one) => one.requests.length > 0));
      expect(asked.map(({ requests }) => requests[0]?.ahead)).toEqual([128]);
    }
    // It sent few in that second.
    opened.time.now += 1000;
    await admitTimes(process, 1);
    expect(opened.batches.at(-1)?.requests[0]?.ahead).toBe(0);
  });

  test("what one process has in spare leaves most to a request that needs nearly all of a limit", async () => {
    await using opened = await open();
    const [many, large] = [opened.process(), opened.process()];
    const rules = { ...noLimits, tokens_per_minute: 2000 };
    const results = await admitTimes(many, 32, rules, 10);
    expect((await opened.load())?.reserved).toBeGreaterThan(320);
    for (const one of results) one.end();
    await pollUntil(async () => ((await opened.load())?.reserved ?? 320) < 320);
    expect((await large.admit([{ id: 1, limits: rules }], 1875)).refusedBy).toBeUndefined();
  });

  test("lower limits hold at once, and a request that needs more tokens is judged by itself", async () => {
    await using opened = await open();
    const process = opened.process();
    await admitTimes(process, 26);
    const before = opened.batches.length;
    const large = await process.admit([{ id: 1, limits }], 5000);
    expect([large.refusedBy, opened.batches.length]).toEqual([undefined, before + 1]);
    const lower = await process.admit([{ id: 1, limits: { ...limits, requests_per_minute: 5 } }], 10);
    expect(lower.refusedBy).toBe("requests_per_minute");
  });

  test("a key at its limit asks for few", async () => {
    await using opened = await open();
    await admitTimes(opened.process(), 100, { ...noLimits, requests_per_minute: 10 }, 0);
    const wanted = opened.batches.flatMap(({ requests }) =>
      requests.filter((one) => one.requests.length > 0).map(({ ahead }) => ahead),
    );
    expect(wanted).toEqual([...Array.from({ length: 16 }, () => 0), ...Array.from({ length: 84 }, () => 2)]);
  });

  test("requests of a key that gets a limit of concurrent requests have a place each, those before it too", async () => {
    await using opened = await open();
    const process = opened.process();
    await admitTimes(process, 40);
    const others = { ...limits, max_concurrency: 100 };
    await Promise.all([process.admit([{ id: 1, limits }], 5000), process.admit([{ id: 1, limits: others }], 10)]);
    expect((await opened.load())?.inFlight).toBe(42);
  });

  test("what was spare is given back if the reply that granted it was lost", async () => {
    await using opened = await open();
    let isLost = false;
    const process = opened.process({
      ...opened.store.limits,
      async take(batch) {
        const results = await opened.store.limits.take(batch);
        if (!isLost && batch.requests.some(({ ahead }) => ahead > 0)) {
          isLost = true;
          throw new Error("the connection was closed");
        }
        return results;
      },
    });
    const results = await admitTimes(process, 40);
    expect(isLost).toBe(true);
    // Ten are spare: each time twice as many were.
    expect((await opened.load())?.reserved).toBe(500);
    opened.time.now += 1000;
    await pollUntil(async () => (await opened.load())?.reserved === 400);
    for (const one of results) one.end();
    await pollUntil(async () => (await opened.load())?.inFlight === 0);
    // A lost reply may count requests twice, and never too few.
    expect((await opened.load())?.minuteRequests).toBeGreaterThanOrEqual(40);
  });

  test("a process that stops gives back what was spare, and its requests stay counted", async () => {
    await using opened = await open();
    const process = opened.process();
    await admitTimes(process, 40);
    expect((await opened.load())?.minuteRequests).toBeGreaterThan(40);
    await process.close();
    expect(await opened.load()).toMatchObject({ inFlight: 0, minuteRequests: 40 });
  });

  test("of each request more is used than of the one before", async () => {
    await using opened = await open();
    const results = await admitTimes(opened.process(), 60);
    const used = results.map((one) => one.used("requests_per_minute"));
    expect(used).toEqual(Array.from({ length: 60 }, (_, index) => index + 1));
  });

  test("random requests of three processes never pass a limit, and nothing that was spare stays", async () => {
    for (let seed = 1; seed <= 3; seed++) {
      const random = createRandom(seed);
      await using opened = await open();
      const processes = [opened.process(), opened.process(), opened.process()];
      const rules = { ...noLimits, requests_per_minute: 800, tokens_per_minute: 30_000 };
      const running: { admission: Admission; tokens: number }[] = [];
      const used: { at: number; requests: number; tokens: number }[] = [];
      const sumOf = (of: "requests" | "tokens"): number =>
        used.reduce((sum, one) => (opened.time.now - one.at < 60_000 ? sum + one[of] : sum), 0);
      const reserved = (): number => running.reduce((sum, { tokens }) => sum + tokens, 0);
      const steps = {
        async burst() {
          const [admissions, tokens] = [random.pick(processes), random.pick([0, 5, 5, 200])];
          for (let left = random.below(80); left > 0; left--) {
            const admission = await admissions.admit([{ id: 1, limits: rules }], tokens);
            // Each one that is refused waits for what others may give back.
            if (admission.refusedBy !== undefined) break;
            running.push({ admission, tokens });
            used.push({ at: opened.time.now, requests: 1, tokens: 0 });
          }
          expect([seed, sumOf("requests") <= 800, sumOf("tokens") + reserved() <= 30_000]).toEqual([seed, true, true]);
        },
        async end() {
          for (const { admission } of running.splice(0, random.below(60))) admission.end();
        },
        async count() {
          for (const { admission, tokens } of running.splice(0, random.below(10))) {
            await opened.count(admission, tokens);
            admission.end();
            used.push({ at: opened.time.now, requests: 0, tokens });
          }
        },
        async step() {
          opened.time.now += random.pick([1, 40, 300, 1000, 20_000, 61_000]);
        },
      };
      for (let round = 0; round < 60; round++) {
        await steps[random.pick(["burst", "burst", "end", "count", "step"] as const)]();
      }
      for (const { admission } of running) admission.end();
      opened.time.now += 2000;
      await pollUntil(async () => (await opened.load())?.inFlight === 0);
      const inWindow = used.filter(({ at }) => Math.floor(opened.time.now / 1000) - Math.floor(at / 1000) < 61);
      const requests = inWindow.reduce((sum, one) => sum + one.requests, 0);
      await pollUntil(async () => (await opened.load())?.minuteRequests === requests);
    }
  });
});
