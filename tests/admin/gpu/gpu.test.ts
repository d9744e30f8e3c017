import { beforeEach, describe, expect, test } from "bun:test";
import { parseGpuSamples } from "../../../src/admin/gpu/posted-samples.ts";
import { connectRaw, type RawClient } from "../../support/raw-client.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { shared } from "../../support/shared.ts";
import { startAdmin } from "../support/admin-server.ts";

const full = {
  gpu_id: 0,
  name: "NVIDIA H200",
  power_draw_w: 512.25,
  temp_c: 61,
  memory_used_mb: 120_000,
  memory_total_mb: 143_771,
  utilization_pct: 97,
};

onEachEngine(({ engine }) => {
  const received: Array<[stored: number, skipped: number]> = [];
  const admin = shared(() => startAdmin({ engine, gpuSamplesReceived: (...counts) => received.push(counts) }));
  const owner = shared(() => admin.login());
  const key = shared(() => admin.createKey("host"));
  beforeEach(() => void (admin.time.now += 60_000));

  const push = (json: unknown, headers: Record<string, string> = { "x-api-key": key.key }) =>
    admin.send("POST", "/api/gpu-stats", { json, headers });
  const latest = async () => (await admin.send("GET", "/api/gpu-stats", { as: owner })).json;

  describe("POST /api/gpu-stats", () => {
    test("refuses the eleventh POST of a key within a second before it reads the body, and stores nothing", async () => {
      for (let sent = 0; sent < 10; sent += 1) expect((await push({ gpus: [full] })).status).toBe(200);
      const before = received.length;
      const refused = await admin.send("POST", "/api/gpu-stats", { headers: { "x-api-key": key.key }, raw: "{" });
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
      expect(refused.json).toEqual({ error: "Too many POSTs with this key, at most 10 a second" });
      expect(received.length).toBe(before);
      const { key: other } = await admin.createKey("another host");
      expect((await push({ gpus: [full] }, { "x-api-key": other })).status).toBe(200);
      admin.time.now += 999;
      expect((await push({ gpus: [full] })).status).toBe(429);
      admin.time.now += 1;
      expect((await push({ gpus: [full] })).status).toBe(200);
      // A clock that is set back does not lock a key out.
      for (let sent = 0; sent < 9; sent += 1) await push({ gpus: [full] });
      expect((await push({ gpus: [full] })).status).toBe(429);
      admin.time.now -= 3_600_000;
      expect((await push({ gpus: [full] })).status).toBe(200);
      admin.time.now += 3_600_000;
    });

    test("refuses the eleventh POST of a key whose others have not ended", async () => {
      const head = `POST /api/gpu-stats HTTP/1.1\r\nHost: h\r\nx-api-key: ${key.key}\r\nContent-Type: application/json`;
      const clients: RawClient[] = [];
      for (let sent = 0; sent < 11; sent += 1) {
        const client = await connectRaw(admin.origin);
        client.send(`${head}\r\nContent-Length: 11\r\n\r\n{`);
        clients.push(client);
      }
      // Any of them: PostgreSQL finds the key of a later one first.
      const refused = await Promise.race(clients.map(async (client) => ({ client, head: await client.head() })));
      expect(refused.head.status).toBe(429);
      const held = clients.find((client) => client !== refused.client);
      admin.time.now += 1000;
      expect((await push({ gpus: [] })).status).toBe(429);
      held?.send('"gpus":[]}');
      expect((await held?.head())?.status).toBe(200);
      expect((await push({ gpus: [] })).status).toBe(200);
      for (const client of clients) client.close();
    });

    test.each([
      ["x-api-key", () => ({ "x-api-key": key.key })],
      ["a bearer token", () => ({ authorization: `Bearer ${key.key}` })],
      ["a bearer token with the scheme in lower case", () => ({ authorization: `bearer ${key.key}` })],
    ])("accepts a key as %s, without a session or CSRF token", async (_, headers) => {
      const response = await push({ gpus: [full] }, headers());
      expect([response.status, response.text]).toEqual([200, '{"ok":true}']);
      expect(response.headers.getSetCookie()).toEqual([]);
    });

    test.each([
      ["no key", () => ({})],
      ["an unknown key", () => ({ "x-api-key": "stranger" })],
      ["an empty key", () => ({ "x-api-key": "" })],
      [
        "a valid key beside an invalid bearer token",
        () => ({ authorization: "Bearer stranger", "x-api-key": key.key }),
      ],
      ["only a session", () => ({ cookie: owner.cookie, "x-csrf-token": owner.csrf })],
    ])("refuses %s before it reads the body", async (_, headers) => {
      const response = await push({}, headers());
      expect([response.status, response.text]).toEqual([401, '{"error":"Invalid API key"}']);
      expect(response.headers.get("www-authenticate")).toBe("Bearer");
    });

    test("refuses an inactive key", async () => {
      const off = await admin.createKey("off");
      await admin.store.keys.update(off.id, { isActive: false });
      expect((await push({ gpus: [] }, { "x-api-key": off.key })).status).toBe(401);
    });

    test("refuses a key that is only for inference, and accepts one that is only for samples", async () => {
      const { id, key: scoped } = await admin.createKey("scoped");
      await admin.store.keys.update(id, { rules: { scope: "inference" } });
      const refused = await push({ gpus: [] }, { "x-api-key": scoped });
      expect([refused.status, refused.json]).toEqual([403, { error: "This API key may not post GPU samples" }]);
      await admin.store.keys.update(id, { rules: { scope: "gpu" } });
      expect((await push({ gpus: [] }, { "x-api-key": scoped })).status).toBe(200);
    });

    test.each([{}, { gpus: null }, { gpus: {} }, { gpus: "[]" }, { gpu: [] }])("refuses %j", async (json) => {
      const response = await push(json);
      expect([response.status, response.text]).toEqual([400, '{"error":"gpus must be an array"}']);
    });

    test("gives all readings of one POST the server's time, and each its own id", async () => {
      await push({ gpus: [full, { gpu_id: 3, name: "bare" }], recorded_at: "1999-01-01" });
      const [first, second] = (await latest()) as Array<Record<string, unknown>>;
      const recorded_at = new Date(admin.time.now + 9 * 3_600_000).toISOString().replace("Z", "+09:00");
      expect(first).toEqual({ id: expect.any(Number), recorded_at, ...full, host: null, other_host: null });
      expect(second).toEqual({
        id: expect.any(Number),
        recorded_at,
        gpu_id: 3,
        name: "bare",
        power_draw_w: null,
        temp_c: null,
        memory_used_mb: null,
        memory_total_mb: null,
        utilization_pct: null,
        host: null,
        other_host: null,
      });
      expect(first?.["id"]).not.toBe(second?.["id"]);
    });

    test("stores the valid entries of a POST and skips the invalid ones without an error", async () => {
      const response = await push({
        gpus: [{ ...full, gpu_id: 10, temp_c: 151 }, null, { ...full, gpu_id: 11 }, 7, []],
      });
      expect([response.status, response.text]).toEqual([200, '{"ok":true}']);
      const ids = ((await latest()) as Array<{ gpu_id: number }>).map(({ gpu_id }) => gpu_id);
      expect(ids).toContain(11);
      expect(received.at(-1)).toEqual([1, 4]);
      expect(ids).not.toContain(10);
    });

    test.each([{ gpus: [] }, { gpus: [{}] }])("accepts %j, which has nothing to store", async (json) => {
      const before = await latest();
      expect((await push(json)).status).toBe(200);
      expect(await latest()).toEqual(before);
    });
  });

  describe("GET /api/gpu-stats/power-history", () => {
    test("shows each bucket's highest sum over the GPUs of one POST, counting missing power as 0", async () => {
      admin.time.now = Date.parse("2026-05-02T00:00:30+09:00");
      const watts = (...powers: Array<number | undefined>) => ({
        gpus: powers.map((power_draw_w, gpu_id) => ({ gpu_id, name: "a", power_draw_w })),
      });
      await push(watts(100, 200));
      admin.time.now += 1000;
      await push(watts(150, 250, undefined));
      admin.time.now += 1000;
      await push(watts(500));
      admin.time.now += 60_000;
      await push(watts(1, undefined));
      const response = await admin.send("GET", "/api/gpu-stats/power-history?days=1&bucket_minutes=1", { as: owner });
      expect([response.json.days, response.json.bucket_minutes]).toEqual([1, 1]);
      expect(response.json.points.slice(-2)).toEqual([
        { recorded_at: "2026-05-02T00:00:00.000+09:00", power_draw_w: 500 },
        { recorded_at: "2026-05-02T00:01:00.000+09:00", power_draw_w: 1 },
      ]);
      const byDay = await admin.send("GET", "/api/gpu-stats/power-history?days=1&bucket_minutes=1440", { as: owner });
      expect(byDay.json.points.at(-1)).toEqual({ recorded_at: "2026-05-02T00:00:00.000+09:00", power_draw_w: 500 });
    });
  });
});

describe("a reading", () => {
  const parsed = (change: Record<string, unknown>) =>
    parseGpuSamples(JSON.parse(JSON.stringify({ gpus: [{ ...full, ...change }] }))).readings[0];

  test.each([
    [{ gpu_id: 0 }, { gpuId: 0 }],
    [{ gpu_id: 255 }, { gpuId: 255 }],
    [{ name: "" }, { name: "" }],
    [{ name: "x".repeat(64) }, { name: "x".repeat(64) }],
    [{ name: "👍".repeat(64) }, { name: "👍".repeat(64) }],
    [{ power_draw_w: 0 }, { powerDrawW: 0 }],
    [{ power_draw_w: 10_000 }, { powerDrawW: 10_000 }],
    [{ power_draw_w: 0.001 }, { powerDrawW: 0.001 }],
    [{ power_draw_w: null }, { powerDrawW: null }],
    [{ temp_c: 0 }, { tempC: 0 }],
    [{ temp_c: 150 }, { tempC: 150 }],
    [{ memory_used_mb: Number.MAX_SAFE_INTEGER }, { memoryUsedMb: Number.MAX_SAFE_INTEGER }],
    [{ utilization_pct: 100 }, { utilizationPct: 100 }],
    [{ fan_pct: "anything" }, {}],
  ])("is accepted with %j", (change, kept) => {
    expect(parsed(change)).toMatchObject(kept);
  });

  test.each([
    { gpu_id: -1 },
    { gpu_id: 256 },
    { gpu_id: 1.5 },
    { gpu_id: "0" },
    { gpu_id: null },
    { gpu_id: true },
    { name: null },
    { name: 7 },
    { name: "x".repeat(65) },
    { name: "👍".repeat(65) },
    { name: "a\0" },
    { power_draw_w: -0.001 },
    { power_draw_w: 10_000.5 },
    { power_draw_w: "100" },
    { power_draw_w: [] },
    { temp_c: -1 },
    { temp_c: 151 },
    { temp_c: 60.5 },
    { temp_c: false },
    { memory_used_mb: -1 },
    { memory_used_mb: 0.5 },
    { memory_used_mb: 1e300 },
    { memory_total_mb: Number.MAX_SAFE_INTEGER + 1 },
    { memory_total_mb: "8" },
    { utilization_pct: -1 },
    { utilization_pct: 101 },
    { utilization_pct: {} },
  ])("is skipped with %j", (change) => {
    expect(parsed(change)).toBeUndefined();
  });

  test.each(["gpu_id", "name"])("is skipped without %s", (field) => {
    expect(parsed({ [field]: undefined })).toBeUndefined();
  });

  test("is skipped if a number overflows, and never holds a negative zero", () => {
    const parse = (text: string) =>
      parseGpuSamples(JSON.parse(`{"gpus":[{"gpu_id":-0,"name":"a","power_draw_w":${text}}]}`));
    expect(parse("1e999")).toMatchObject({ readings: [], skipped: 1 });
    expect(parse("-1e999")).toMatchObject({ readings: [], skipped: 1 });
    const [reading] = parse("-0").readings;
    expect([Object.is(reading?.gpuId, 0), Object.is(reading?.powerDrawW, 0)]).toEqual([true, true]);
  });

  test("is the last valid entry of its GPU, and there are at most 256", () => {
    const entry = (gpu_id: number, temp_c: number) => ({ gpu_id, name: "a", temp_c });
    const gpus = [
      entry(1, 10),
      entry(2, 20),
      entry(1, 30),
      entry(1, 999),
      ...Array.from({ length: 20_000 }, (_, id) => entry(id, 5)),
    ];
    const { readings, skipped } = parseGpuSamples({ gpus: gpus.slice(0, 4) });
    expect(skipped).toBe(2);
    expect(readings.map(({ gpuId, tempC }) => [gpuId, tempC])).toEqual([
      [1, 30],
      [2, 20],
    ]);
    expect(parseGpuSamples({ gpus }).readings).toHaveLength(256);
  });
});
