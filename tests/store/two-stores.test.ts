import { expect, test } from "bun:test";
import { createLedger } from "../../src/ledger/ledger.ts";
import { onEachEngine } from "./each-engine.ts";
import { createKeys, readReport, type DailyRow } from "./test-store.ts";

onEachEngine(({ openTestStore }) => {
  test("two stores on one database count every event once", async () => {
    await using one = await openTestStore();
    await using two = await one.openAnother();
    const ids = await createKeys(one.store, ["a", "b", "c"]);
    const eventsEach = 1500;

    await Promise.all(
      [one, two].map(async ({ store, entries }) => {
        const ledger = createLedger({ store: store.usage, clock: Date.now, log: silent });
        const recording = ids.map(async (keyId) => {
          for (let n = 0; n < eventsEach; n++) {
            await ledger.record({ keyId, closedAt: Date.now(), inputTokens: n, outputTokens: 1 });
          }
        });
        await Promise.all(recording);
        await ledger.close();
        expect(entries).toEqual([]);
      }),
    );

    const inputEach = eventsEach * (eventsEach - 1);
    expect(await two.store.keys.list()).toEqual(
      ids.map((id) =>
        expect.objectContaining({
          id,
          requestCount: eventsEach * 2,
          inputTokens: inputEach,
          outputTokens: eventsEach * 2,
        }),
      ),
    );
    const total = { requestCount: eventsEach * 6, inputTokens: inputEach * 3, outputTokens: eventsEach * 6 };
    expect(await one.store.usage.sumOfMinutes(0, 100_000_000)).toEqual(total);
    const days = await readReport<DailyRow>(one.store.usage.daily("2020-01-01"));
    expect(days.reduce((sum, day) => sum + day.input_tokens, 0)).toBe(total.inputTokens);
  });

  test("pushes that two stores get in one millisecond are all kept, each with a millisecond of its own", async () => {
    await using one = await openTestStore();
    await using two = await one.openAnother();
    const recordedAt = Date.now();
    const reading = { name: "GPU", tempC: null, memoryUsedMb: null, memoryTotalMb: null, utilizationPct: null };
    const pushes = Array.from({ length: 16 }, (_, n) =>
      (n % 2 === 0 ? one : two).store.gpu.add({
        keyId: 1,
        recordedAt,
        readings: [
          { ...reading, gpuId: 0, powerDrawW: 100 + n },
          { ...reading, gpuId: 1, powerDrawW: 100 + n },
        ],
      }),
    );
    await Promise.all(pushes);
    const latest = await one.store.gpu.latest();
    expect(latest.map((sample) => [sample.gpuId, sample.recordedAt])).toEqual([
      [0, recordedAt + 15],
      [1, recordedAt + 15],
    ]);
    const points = two.store.gpu.powerHistory({ since: recordedAt, bucketMinutes: 1 });
    const [point] = await readReport<{ power_draw_w: number }>(points);
    expect(point?.power_draw_w).toBe(2 * 115);
    const means = one.store.gpu.history({ since: recordedAt, bucketMinutes: 1 });
    const [mean] = await readReport<{ power_draw_w: number }>(means);
    expect(mean?.power_draw_w).toBe(2 * 107.5);
  });
});

const silent = { debug() {}, info() {}, warn() {}, error() {} };
