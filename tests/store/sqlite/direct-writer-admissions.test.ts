import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { noLimits } from "../../../src/store/keys/rules.ts";
import type { CountedLoad } from "../../../src/store/limits/contract.ts";
import { dayOf } from "../../../src/time/seoul.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { usageIncrement } from "../test-store.ts";
import { startDirectWriter } from "./start-direct-writer.ts";

const limits = { ...noLimits, requests_per_minute: 100, tokens_per_minute: 1000, tokens_per_day: 100 };

/** A direct writer that admits requests of keys with these limits. */
async function start() {
  const started = await startDirectWriter();
  const { direct, worker, state } = started;
  let admitted = 0;

  /** @returns the limits that refuse requests of one key, which reserve 30 tokens each */
  async function admit(keyId: number, count = 1): Promise<(string | undefined)[]> {
    const requests = Array.from({ length: count }, () => ({ keyId, limits, tokens: 30, number: ++admitted }));
    const results = await direct.admit({ instance: "one", requests, ended: [] });
    return results.map(({ refusedBy }) => refusedBy);
  }

  /** Ends the latest admission of a key. */
  const settle = (keyId: number, tokens: number): Promise<unknown> =>
    direct.add(
      [
        usageIncrement({
          keyId,
          minute: state.now / 60_000,
          lastClosedAt: state.now,
          inputTokens: tokens,
          outputTokens: 0,
        }),
      ],
      { ledger: "test", number: ++state.flushes },
      [],
      undefined,
      [{ keyId, instance: "one", number: admitted }],
    );

  const loadsOf = async (...keyIds: number[]): Promise<CountedLoad[]> =>
    (await worker.call("limits.listLoads", keyIds)) as CountedLoad[];

  return { ...started, admit, settle, loadsOf };
}

test("requests are admitted here, and more than 256 of one moment by the thread", async () => {
  await using started = await start();
  const { admit, loadsOf, writes, state } = started;
  expect(await admit(1)).toEqual([undefined]);
  expect(await admit(1, 3)).toEqual([undefined, undefined, "tokens_per_day"]);
  expect(writes()).toEqual([]);
  expect(await admit(2, 257)).toContain("tokens_per_day");
  expect(writes()).toEqual(["limits.admit"]);
  state.now += 60_000;
  await admit(2);
  expect(writes()).toHaveLength(1);
  const [first, second] = await loadsOf(1, 2);
  expect(first).toMatchObject({ inFlight: 3, reserved: 90, refusedToday: 1 });
  expect(second).toMatchObject({ inFlight: 3, refusedToday: 255 });
});

test("what ended counts against the limits before they are folded, and once after it", async () => {
  await using started = await start();
  const { addFirst, admit, settle, loadsOf, calls, staged, store, state } = started;
  await addFirst();
  await admit(1);
  await settle(1, 80);
  expect(staged()).toBe(1);
  calls.splice(0);
  expect(await admit(1)).toEqual(["tokens_per_day"]);
  expect(calls).toEqual([]);
  state.flushes -= 1;
  await settle(1, 80);
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
  const { admit, settle, loadsOf, writes, state } = started;
  await admit(1);
  await settle(1, 80);
  state.flushes -= 1;
  await settle(1, 80);
  expect(writes()).toEqual(["usage.add"]);
  const [load] = await loadsOf(1);
  expect(load).toMatchObject({ inFlight: 0, reserved: 0, minuteTokens: 80, dayTokens: 80 });
});

test("what is left of a refused flush counts once in the sums of days", async () => {
  await using started = await start();
  const { addFirst, admit, settle, loadsOf, staged, worker, file } = started;
  await addFirst();
  using other = new Database(file);
  other.run("CREATE TRIGGER refuse BEFORE UPDATE ON keys WHEN new.id = 2 BEGIN SELECT RAISE(ABORT, 'no'); END");
  await admit(2);
  await settle(2, 50);
  await worker.call("usage.sumOfKeys");
  expect(staged()).toBe(1);
  other.run("DROP TRIGGER refuse");
  expect((await loadsOf(2))[0]).toMatchObject({ inFlight: 0, dayTokens: 50 });
});

test("admissions and counts of one moment are committed one after the other", async () => {
  await using started = await start();
  const { add, addFirst, admit, settle, calls, requestCount } = started;
  await addFirst();
  await admit(1);
  await settle(1, 0);
  calls.splice(0);
  const all = await Promise.all([admit(1), add(1), admit(1), settle(2, 5), admit(1, 2), add(2)]);
  expect([all[0], all[2], all[4]].flat()).toEqual([undefined, undefined, "tokens_per_day", "tokens_per_day"]);
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
