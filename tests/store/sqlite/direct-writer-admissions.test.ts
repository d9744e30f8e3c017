import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { noLimits } from "../../../src/store/keys/rules.ts";
import type { CountedLoad } from "../../../src/store/limits/contract.ts";
import { dayOf } from "../../../src/time/seoul.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { usageAt } from "../test-store.ts";
import { createTestProcess } from "../limits/test-process.ts";
import { startDirectWriter } from "./start-direct-writer.ts";

const limits = { ...noLimits, requests_per_minute: 100, tokens_per_minute: 1000, tokens_per_day: 100 };

/** A direct writer that admits requests of keys with these limits. */
async function start() {
  const started = await startDirectWriter();
  const { direct, worker, state } = started;
  const process = createTestProcess(direct, "one");

  /** @returns the limits that refuse requests of one key, which reserve 30 tokens each */
  async function admit(keyId: number, count = 1): Promise<(string | undefined)[]> {
    const requests = Array.from({ length: count }, () => 30);
    const results = await process.admit({ keyId, limits, requests });
    return results.map(({ refusedBy }) => refusedBy);
  }

  const count = (keyId: number, tokens: number): Promise<unknown> =>
    direct.add(
      [usageAt(keyId, state.now, { inputTokens: tokens, outputTokens: 0 })],
      { ledger: "test", number: ++state.flushes },
      [],
      undefined,
      [{ subjects: [keyId], instance: "one" }],
    );

  /** Counts the tokens of a request, which has ended. */
  async function settle(keyId: number, tokens: number): Promise<void> {
    await count(keyId, tokens);
    await process.end(limits, 30, keyId);
  }

  const loadsOf = async (...keyIds: number[]): Promise<CountedLoad[]> =>
    (await worker.call("limits.listLoads", keyIds)) as CountedLoad[];

  /** A request of another process, which holds nothing else. */
  async function admitElsewhere(instance: string): Promise<(string | undefined)[]> {
    const results = await createTestProcess(direct, instance).admit({ limits, requests: [30] });
    return results.map(({ refusedBy }) => refusedBy);
  }

  return { ...started, admit, admitElsewhere, count, settle, loadsOf };
}

test("requests are admitted here, and more than 256 of one moment by the thread", async () => {
  await using started = await start();
  const { admit, loadsOf, writes, state } = started;
  expect(await admit(1)).toEqual([undefined]);
  expect(await admit(1, 3)).toEqual([undefined, undefined, "tokens_per_day"]);
  expect(writes()).toEqual([]);
  expect(await admit(2, 257)).toContain("tokens_per_day");
  expect(writes()).toEqual(["limits.take"]);
  state.now += 60_000;
  await admit(2);
  expect(writes()).toHaveLength(1);
  const [first, second] = await loadsOf(1, 2);
  expect(first).toMatchObject({ inFlight: 3, reserved: 90, refusedToday: 1 });
  expect(second).toMatchObject({ inFlight: 3, refusedToday: 255 });
});

test("what ended counts against the limits before they are folded, and once after it", async () => {
  await using started = await start();
  const { addFirst, admit, count, settle, loadsOf, calls, staged, store, state } = started;
  await addFirst();
  await admit(1);
  await settle(1, 80);
  expect(staged()).toBe(1);
  calls.splice(0);
  expect(await admit(1)).toEqual(["tokens_per_day"]);
  expect(calls).toEqual([]);
  state.flushes -= 1;
  await count(1, 80);
  expect(calls).toEqual(["usage.add"]);
  const [load] = await loadsOf(1);
  expect(load).toMatchObject({ inFlight: 0, reserved: 0, minuteTokens: 80, dayTokens: 92, minuteRequests: 1 });
  expect(staged()).toBe(0);
  // The key's total and its day agree.
  expect(await store.usage.sumOfKeys()).toMatchObject({ requestCount: 2, inputTokens: 90 });
  expect(await store.usage.sumOfDay(dayOf(state.now))).toMatchObject({ requestCount: 2, inputTokens: 90 });
});

test("a flush that the thread may have written counts once in the sums of days", async () => {
  await using started = await start();
  const { admit, count, settle, loadsOf, writes, state } = started;
  await admit(1);
  await settle(1, 80);
  state.flushes -= 1;
  await count(1, 80);
  expect(writes()).toEqual(["usage.add"]);
  const [load] = await loadsOf(1);
  expect(load).toMatchObject({ inFlight: 0, reserved: 0, minuteTokens: 80, dayTokens: 80 });
});

test("a staged flush that the tables refuse counts against the limits of its day all the same", async () => {
  await using started = await start();
  const { addFirst, admit, settle, loadsOf, staged, worker, file } = started;
  await addFirst();
  using other = new Database(file);
  other.run("CREATE TRIGGER refuse BEFORE UPDATE ON keys WHEN new.id = 2 BEGIN SELECT RAISE(ABORT, 'no'); END");
  await admit(2);
  await settle(2, 50);
  await worker.call("usage.sumOfKeys");
  expect(staged()).toBe(0);
  expect((await loadsOf(2))[0]).toMatchObject({ inFlight: 0, dayTokens: 50 });
});

test("admissions and counts of one moment are committed one after the other", async () => {
  await using started = await start();
  const { add, addFirst, admit, admitElsewhere, count, settle, calls, requestCount } = started;
  await addFirst();
  await admit(1);
  await settle(1, 0);
  calls.splice(0);
  const [first, , second, , third] = await Promise.all([
    admitElsewhere("two"),
    add(1),
    admitElsewhere("three"),
    count(2, 5),
    admitElsewhere("four"),
    add(2),
  ]);
  expect([first, second, third].flat()).toEqual([undefined, undefined, "tokens_per_day"]);
  expect(calls).toEqual([]);
  expect(await requestCount()).toBe(5);
});

test("while another program locks the database, the thread admits when it is free", async () => {
  await using started = await start();
  const { admit, loadsOf, writes, file } = started;
  await admit(1);
  using other = new Database(file);
  other.run("BEGIN IMMEDIATE");
  const admitting = admit(1);
  await pollUntil(() => writes().length === 1);
  other.run("ROLLBACK");
  expect(await admitting).toEqual([undefined]);
  expect((await loadsOf(1))[0]).toMatchObject({ inFlight: 2 });
});
