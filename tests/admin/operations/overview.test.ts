import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { onEachEngine } from "../../store/each-engine.ts";
import { noRules } from "../../../src/store/keys/rules.ts";
import { createTestProcess } from "../../store/limits/test-process.ts";
import { type Admin, startAdmin, type Visitor } from "../support/admin-server.ts";

const minute = 60_000;
const noon = Date.parse("2026-05-02T12:00:30+09:00");

onEachEngine(({ engine }) => {
  let admin: Admin;
  let owner: Required<Visitor>;
  let key: { id: number; key: string };
  beforeAll(async () => {
    admin = await startAdmin({ engine });
    admin.time.now = noon;
    owner = await admin.login();
    key = await admin.createKey("a");
  });
  afterEach(() => void (admin.time.now += 10_000));
  afterAll(() => admin.stop());

  const overview = async () => (await admin.send("GET", "/api/overview", { as: owner })).json;
  const count = (at: number, inputTokens: number) =>
    admin.store.usage.add([
      {
        keyId: key.id,
        minute: Math.floor(at / minute),
        lastClosedAt: at,
        requestCount: 1,
        inputTokens,
        outputTokens: 1,
      },
    ]);

  test("shows today, yesterday up to the same minute, and the last whole minute", async () => {
    const yesterday = noon - 1440 * minute;
    await count(yesterday - 12 * 60 * minute - minute, 1);
    await count(yesterday - 12 * 60 * minute, 10);
    await count(yesterday, 100);
    await count(yesterday + minute, 1000);
    await count(noon - minute, 20_000);
    await count(noon, 300_000);
    const response = await overview();
    expect(response.yesterday).toEqual({ request_count: 2, input_tokens: 110, output_tokens: 2, total_tokens: 112 });
    expect(response.today).toEqual({
      request_count: 2,
      input_tokens: 320_000,
      output_tokens: 2,
      total_tokens: 320_002,
    });
    expect(response.last_minute).toEqual({
      request_count: 1,
      input_tokens: 20_000,
      output_tokens: 1,
      total_tokens: 20_001,
    });
    expect(response.now).toBe("2026-05-02T12:00:30.000+09:00");
  });

  test("counts only active keys", async () => {
    const off = await admin.createKey("off");
    const before = (await overview()).active_keys;
    await admin.store.keys.update(off.id, { isActive: false });
    expect((await overview()).active_keys).toBe(before - 1);
    expect((await overview()).in_flight).toBe(3);
  });

  test("counts the active keys of which nothing is left of a limit, what is reserved included", async () => {
    const { admit } = createTestProcess(admin.store.limits);
    const ids: number[] = [];
    for (const [name, set, isActive] of [
      ["places", { max_concurrency: 1 }, true],
      ["tokens", { tokens_per_day: 10 }, true],
      ["left", { tokens_per_day: 11, max_concurrency: 2 }, true],
      ["off", { max_concurrency: 1 }, false],
      ["expired", { max_concurrency: 1 }, true],
    ] as const) {
      const { id } = await admin.createKey(name);
      const rules = { ...noRules, ...set };
      const expiresAt = name === "expired" ? admin.time.now - 1 : null;
      await admin.store.keys.update(id, { rules: set, isActive, expiresAt });
      ids.push(id);
      await admit({ keyId: id, limits: rules, requests: [10] });
    }
    expect((await overview()).keys_at_limit).toBe(2);
    for (const id of ids) await admin.store.keys.delete(id);
    expect((await overview()).keys_at_limit).toBe(0);
  });

  test("a GPU without a sample for two minutes is stale and not in the sum", async () => {
    expect((await overview()).power_draw_w).toBeNull();
    const push = (...gpus: object[]) =>
      admin.send("POST", "/api/gpu-stats", { headers: { "x-api-key": key.key }, json: { gpus } });
    await push({ gpu_id: 0, name: "a", power_draw_w: 100 });
    admin.time.now += 1;
    await push({ gpu_id: 1, name: "b", power_draw_w: 30.5 }, { gpu_id: 2, name: "c" });
    admin.time.now += 119_998;
    expect((await overview()).power_draw_w).toBe(130.5);
    admin.time.now += 1;
    const response = await overview();
    expect(response.power_draw_w).toBe(30.5);
    expect(response.gpus.map(({ stale }: { stale: boolean }) => stale)).toEqual([true, false, false]);
    admin.time.now += 1;
    expect((await overview()).power_draw_w).toBeNull();
  });
});
