import { beforeEach, describe, expect, test } from "bun:test";
import { parseGpuSamples } from "../../../src/admin/gpu/posted-samples.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { shared } from "../../support/shared.ts";
import { startAdmin } from "../support/admin-server.ts";

onEachEngine(({ engine }) => {
  const admin = shared(() => startAdmin({ engine }));
  const owner = shared(() => admin.login());
  const key = shared(() => admin.createKey("host"));
  beforeEach(() => void (admin.time.now += 60_000));

  const push = (json: unknown) => admin.send("POST", "/api/gpu-stats", { json, headers: { "x-api-key": key.key } });
  const latest = async () => (await admin.send("GET", "/api/gpu-stats", { as: owner })).json;
  const full = {
    gpu_id: 0,
    name: "NVIDIA H200",
    power_draw_w: 512.25,
    temp_c: 61,
    memory_used_mb: 120_000,
    memory_total_mb: 143_771,
    utilization_pct: 97,
  };

  describe("the host of a POST", () => {
    test("is kept with the latest sample of each of its GPUs", async () => {
      expect((await push({ host: " gpu-01 ", gpus: [{ ...full, gpu_id: 20 }] })).status).toBe(200);
      expect((await push({ gpus: [{ ...full, gpu_id: 21 }] })).status).toBe(200);
      const hosts = ((await latest()) as Array<{ gpu_id: number; host: string | null }>)
        .filter(({ gpu_id }) => gpu_id === 20 || gpu_id === 21)
        .map(({ host }) => host);
      expect(hosts).toEqual(["gpu-01", null]);
    });

    test.each([
      [undefined, undefined],
      [null, undefined],
      ["a", "a"],
      ["  rack 7  ", "rack 7"],
      ["👍".repeat(64), "👍".repeat(64)],
      ["\ud800", "\ufffd"],
    ])("%j is taken as %j", (host, kept) => {
      expect(parseGpuSamples({ gpus: [], host }).host).toBe(kept);
    });

    test.each([
      [7, "host must be a string"],
      [["a"], "host must be a string"],
      [{}, "host must be a string"],
      [true, "host must be a string"],
      ["", "host must not be empty"],
      [" \n ", "host must not be empty"],
      ["x".repeat(65), "host must be at most 64 characters"],
      ["👍".repeat(65), "host must be at most 64 characters"],
      ["x".repeat(500_000), "host must be at most 64 characters"],
      ["a\0b", "host must not contain control characters or overrides of text direction"],
    ])("is refused as %p, and nothing of that POST is stored", async (host, message) => {
      const before = await latest();
      const response = await push({ host, gpus: [{ ...full, gpu_id: 30 }] });
      expect([response.status, response.json]).toEqual([400, { error: message }]);
      expect(await latest()).toEqual(before);
    });

    test("that another host shares a GPU with is shown, and logged once until the GPUs change", async () => {
      const lines = () => admin.logged.filter((line) => line.includes("Two hosts send the same GPU ids"));
      const send = (host: string, ids: number[]) => push({ host, gpus: ids.map((gpu_id) => ({ ...full, gpu_id })) });
      for (let round = 0; round < 5; round++) {
        await send("left", [40, 41]);
        admin.time.now += 500;
        await send("right", [40, 41]);
        admin.time.now += 500;
      }
      expect(lines()).toHaveLength(1);
      expect(JSON.parse(lines()[0] ?? "")).toMatchObject({ level: "warn", hosts: "left, right", gpuIds: "40, 41" });
      const named = ((await latest()) as Array<Record<string, unknown>>).filter(
        ({ other_host }) => other_host !== null,
      );
      expect(named).toMatchObject([
        { gpu_id: 40, host: "right", other_host: "left" },
        { gpu_id: 41, host: "right", other_host: "left" },
      ]);
      admin.time.now += 121_000;
      expect(((await latest()) as typeof named).filter(({ other_host }) => other_host !== null)).toEqual([]);
      // After so long, one with a new name is not a second host.
      await send("renamed", [40]);
      expect(lines()).toHaveLength(1);
      for (const host of ["left", "right"]) {
        await send(host, [41]);
        admin.time.now += 500;
      }
      expect(lines().map((line) => JSON.parse(line).gpuIds)).toEqual(["40, 41", "41"]);
      // However many names a key holder invents, there is one line a minute.
      for (let name = 0; name < 9; name++) await send(`invented ${name}`, [41]);
      expect(lines()).toHaveLength(2);
    });
  });

  describe("GET /api/gpu-stats/history", () => {
    const history = async (query: string) => admin.send("GET", `/api/gpu-stats/history?${query}`, { as: owner });

    test("shows the mean power and the energy of all GPUs, and every measure of one", async () => {
      admin.time.now = Date.parse("2026-06-02T00:00:30+09:00");
      const gpu = (gpu_id: number, power_draw_w: number) => ({ ...full, gpu_id, power_draw_w });
      await push({ gpus: [gpu(0, 100), gpu(1, 200)] });
      admin.time.now += 1000;
      await push({ gpus: [gpu(0, 300)] });
      const all = await history("days=1&bucket_minutes=1");
      const point = { bucket_start: "2026-06-02T00:00:00.000+09:00", measured_minutes: 1 };
      expect(all.json).toEqual({
        days: 1,
        bucket_minutes: 1,
        points: [{ ...point, power_draw_w: 400, energy_wh: 6.667 }],
      });
      expect((await history("days=1&bucket_minutes=1440")).json.points).toEqual([
        { ...point, power_draw_w: 400, energy_wh: 6.667 },
      ]);
      expect((await history("days=1&bucket_minutes=1&gpu_id=0")).json.points).toEqual([
        {
          ...point,
          power_draw_w: 200,
          energy_wh: 3.333,
          power_draw_w_max: 300,
          power_draw_w_last: 300,
          temp_c: 61,
          temp_c_max: 61,
          temp_c_last: 61,
          memory_used_mb: 120_000,
          memory_used_mb_max: 120_000,
          memory_used_mb_last: 120_000,
          utilization_pct: 97,
          utilization_pct_max: 97,
          utilization_pct_last: 97,
        },
      ]);
      expect((await history("gpu_id=255")).json).toEqual({ days: 7, bucket_minutes: 5, points: [] });
    });

    test.each([
      ["gpu_id=-1", "gpu_id must be an integer from 0 to 255"],
      ["gpu_id=256", "gpu_id must be an integer from 0 to 255"],
      ["gpu_id=", "gpu_id must be an integer from 0 to 255"],
      ["gpu_id=0x1", "gpu_id must be an integer from 0 to 255"],
      ["gpu_id=1.0", "gpu_id must be an integer from 0 to 255"],
      ["gpu_id=all", "gpu_id must be an integer from 0 to 255"],
      ["days=0", "days must be an integer from 1 to 30"],
      ["days=31", "days must be an integer from 1 to 30"],
      ["bucket_minutes=0", "bucket_minutes must be an integer from 1 to 1440"],
      ["bucket_minutes=1441&gpu_id=0", "bucket_minutes must be an integer from 1 to 1440"],
    ])("refuses %s", async (query, message) => {
      const response = await history(query);
      expect([response.status, response.json]).toEqual([400, { error: message }]);
    });
  });
});
