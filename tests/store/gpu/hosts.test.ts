import { expect, test } from "bun:test";
import { onEachEngine } from "../each-engine.ts";
import type { GpuReading } from "../../../src/domain/gpu.ts";

const now = Date.parse("2026-05-01T12:00:00+09:00");

const reading = (gpuId: number): GpuReading => ({
  gpuId,
  name: `GPU ${gpuId}`,
  powerDrawW: 100,
  tempC: 60,
  memoryUsedMb: 1000,
  memoryTotalMb: 80_000,
  utilizationPct: 50,
});

onEachEngine(({ openTestEngine }) => {
  const push = async (
    opened: Awaited<ReturnType<typeof openTestEngine>>,
    at: number,
    host: string | undefined,
    ids = [0],
  ) => opened.store.gpu.add({ keyId: 1, recordedAt: at, host, readings: ids.map((id) => reading(id)) });

  test("two hosts that send the same GPU in turn are both named, until one stops", async () => {
    let time = now;
    await using opened = await openTestEngine(() => time);
    expect(await push(opened, now, "alpha", [0, 1, 2])).toEqual([]);
    expect(await push(opened, now + 500, "beta", [1, 2, 3])).toEqual([
      { gpuId: 1, hosts: ["beta", "alpha"] },
      { gpuId: 2, hosts: ["beta", "alpha"] },
    ]);
    expect(await push(opened, now + 1000, "alpha", [0, 1])).toEqual([{ gpuId: 1, hosts: ["alpha", "beta"] }]);
    expect(await push(opened, now + 2000, "alpha", [0, 1])).toEqual([]);
    time = now + 2000;
    const others = async () => (await opened.store.gpu.latest()).map(({ otherHost }) => otherHost);
    expect(await others()).toEqual([null, "beta", "alpha", null]);
    time = now + 121_000;
    expect(await others()).toEqual([null, null, null, null]);
  });

  test("a host with a new name is not a second host", async () => {
    await using opened = await openTestEngine(() => now + 121_000);
    await push(opened, now, "alpha");
    expect(await push(opened, now + 120_000, "beta")).toEqual([]);
    expect(await opened.store.gpu.latest()).toMatchObject([{ host: "beta", otherHost: null }]);
  });
});
