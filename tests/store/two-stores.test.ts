import { expect, test } from "bun:test";
import { onEachEngine } from "./each-engine.ts";
import { readReport } from "./test-store.ts";

onEachEngine(({ openTestStore }) => {
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
