import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { parseGpuReadings, parseHost } from "../../src/admin/gpu.ts";
import { pushGpuScript } from "../../src/gpu-agent/push-gpu-script.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { type Admin, startAdmin, type Visitor } from "./support/admin-server.ts";

let admin: Admin;
let owner: Required<Visitor>;
let key: { id: number; key: string };
const received: Array<[stored: number, skipped: number]> = [];
beforeAll(async () => {
  admin = await startAdmin({ gpuSamplesReceived: (...counts) => received.push(counts) });
  owner = await admin.login();
  key = await admin.createKey("host");
});
afterAll(() => admin.stop());
beforeEach(() => void (admin.time.now += 60_000));

const push = (json: unknown, headers: Record<string, string> = { "x-api-key": key.key }) =>
  admin.send("POST", "/api/gpu-stats", { json, headers });
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

describe("POST /api/gpu-stats", () => {
  test("refuses the eleventh POST of a key within a second before it reads the body, and stores nothing", async () => {
    for (let sent = 0; sent < 10; sent += 1) expect((await push({ gpus: [full] })).status).toBe(200);
    const before = received.length;
    const refused = await admin.send("POST", "/api/gpu-stats", { headers: { "x-api-key": key.key }, raw: "{" });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(refused.json).toEqual({ error: "Too many POSTs with this key, at most 10 a second" });
    expect(received.length).toBe(before);
    admin.time.now += 1000;
    expect((await push({ gpus: [full] })).status).toBe(200);
  });

  test("refuses the eleventh POST of a key whose others have not ended", async () => {
    const head = `POST /api/gpu-stats HTTP/1.1\r\nHost: h\r\nx-api-key: ${key.key}\r\nContent-Type: application/json`;
    const clients: RawClient[] = [];
    for (let sent = 0; sent < 10; sent += 1) {
      const client = await connectRaw(admin.origin);
      client.send(`${head}\r\nContent-Length: 11\r\n\r\n{`);
      clients.push(client);
    }
    // It is received later than those.
    expect((await push({ gpus: [] })).status).toBe(429);
    admin.time.now += 1000;
    expect((await push({ gpus: [] })).status).toBe(429);
    clients[0]?.send('"gpus":[]}');
    expect((await clients[0]?.head())?.status).toBe(200);
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
    ["a valid key beside an invalid bearer token", () => ({ authorization: "Bearer stranger", "x-api-key": key.key })],
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
    const response = await push({ gpus: [{ ...full, gpu_id: 10, temp_c: 151 }, null, { ...full, gpu_id: 11 }, 7, []] });
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

describe("a reading", () => {
  const parsed = (change: Record<string, unknown>) =>
    parseGpuReadings(JSON.parse(JSON.stringify({ gpus: [{ ...full, ...change }] }))).readings[0];

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
      parseGpuReadings(JSON.parse(`{"gpus":[{"gpu_id":-0,"name":"a","power_draw_w":${text}}]}`));
    expect(parse("1e999")).toEqual({ readings: [], skipped: 1 });
    expect(parse("-1e999")).toEqual({ readings: [], skipped: 1 });
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
    const { readings, skipped } = parseGpuReadings({ gpus: gpus.slice(0, 4) });
    expect(skipped).toBe(2);
    expect(readings.map(({ gpuId, tempC }) => [gpuId, tempC])).toEqual([
      [1, 30],
      [2, 20],
    ]);
    expect(parseGpuReadings({ gpus }).readings).toHaveLength(256);
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
    expect(parseHost({ host })).toBe(kept);
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
    ["a\0b", "host must not contain null characters"],
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
    const shared = ((await latest()) as Array<Record<string, unknown>>).filter(({ other_host }) => other_host !== null);
    expect(shared).toMatchObject([
      { gpu_id: 40, host: "right", other_host: "left" },
      { gpu_id: 41, host: "right", other_host: "left" },
    ]);
    admin.time.now += 60_000;
    await send("left", [41]);
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

describe("GET /push-gpu.sh", () => {
  test("is the script as plain text, without a session or a cookie", async () => {
    const response = await admin.send("GET", "/push-gpu.sh");
    expect([response.status, response.text]).toEqual([200, pushGpuScript]);
    expect(response.headers.get("content-type")).toBe("text/plain;charset=utf-8");
    expect(response.headers.getSetCookie()).toEqual([]);
  });

  test("takes no other method", async () => {
    const response = await admin.send("POST", "/push-gpu.sh");
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  });
});
