import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { usageAt } from "../../store/test-store.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { noRules } from "../../../src/store/keys/rules.ts";
import { timestampOf } from "../../../src/time/seoul.ts";
import { createTestProcess } from "../../store/limits/test-process.ts";
import type { BackendStatus } from "../../../src/domain/backends.ts";
import { type Admin, startAdmin, type Visitor } from "../support/admin-server.ts";

const minute = 60_000;
const noon = Date.parse("2026-05-02T12:00:30+09:00");

onEachEngine(({ engine }) => {
  let admin: Admin;
  let owner: Required<Visitor>;
  let key: { id: number; key: string };
  let states: () => BackendStatus[] = () => [];
  beforeAll(async () => {
    admin = await startAdmin({ engine, backendStates: async () => states() });
    admin.time.now = noon;
    owner = await admin.login();
    key = await admin.createKey("a");
  });
  afterEach(() => void (admin.time.now += 10_000));
  afterAll(() => admin.stop());

  const overview = async () => (await admin.send("GET", "/api/overview", { as: owner })).json;
  const count = (at: number, inputTokens: number) =>
    admin.store.usage.add([usageAt(key.id, at, { inputTokens, outputTokens: 1 })]);

  test("shows the last whole minute", async () => {
    await count(noon - 2 * minute, 1);
    await count(noon - minute, 20_000);
    await count(noon, 300_000);
    const response = await overview();
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

  test("lists the five active keys and teams that are nearest to a limit, each once", async () => {
    const { admit } = createTestProcess(admin.store.limits);
    const ids: number[] = [];
    for (const [name, set, isActive, tokens] of [
      ["places", { max_concurrency: 1, tokens_per_month: 11 }, true, 10],
      ["tokens", { tokens_per_day: 100 }, true, 85],
      ["left", { tokens_per_day: 100, max_concurrency: 2 }, true, 79],
      ["off", { max_concurrency: 1 }, false, 10],
      ["expired", { max_concurrency: 1 }, true, 10],
    ] as const) {
      const { id } = await admin.createKey(name);
      const rules = { ...noRules, ...set };
      const expiresAt = name === "expired" ? admin.time.now - 1 : null;
      await admin.store.keys.update(id, { rules: set, isActive, expiresAt });
      ids.push(id);
      await admit({ keyId: id, limits: rules, requests: [tokens] });
    }
    const team = (await admin.send("POST", "/api/teams", { as: owner, json: { name: "ml", tokens_per_day: 10 } })).json;
    await admit({ keyId: -team.id, limits: { ...noRules, tokens_per_day: 10 }, requests: [9] });
    const ofUser = { key_id: ids[2], external: "kim", tokens_per_day: 10 };
    const user = (await admin.send("POST", "/api/users", { as: owner, json: ofUser })).json;
    await admit({ keyId: -user.id, limits: { ...noRules, tokens_per_day: 10 }, requests: [10] });
    expect((await overview()).near_limit).toEqual([
      { kind: "key", id: ids[0], name: "places", used: 1, limit: 1, unit: "concurrent requests" },
      { kind: "team", id: team.id, name: "ml", used: 9, limit: 10, unit: "tokens per day" },
      { kind: "key", id: ids[1], name: "tokens", used: 85, limit: 100, unit: "tokens per day" },
    ]);
    for (let n = 0; n < 6; n++) {
      const { id } = await admin.createKey(`full ${n}`);
      await admin.store.keys.update(id, { rules: { tokens_per_day: 1 } });
      await admit({ keyId: id, limits: { ...noRules, tokens_per_day: 1 }, requests: [1] });
      ids.push(id);
    }
    expect((await overview()).near_limit).toHaveLength(5);
    for (const id of ids) await admin.store.keys.delete(id);
  });

  test("lists the GPUs that are hot, the hottest first, for two minutes after their last sample", async () => {
    const hot = async () => (await overview()).hot_gpus.map(({ gpu_id }: { gpu_id: number }) => gpu_id);
    const push = (...gpus: object[]) =>
      admin.send("POST", "/api/gpu-stats", { headers: { "x-api-key": key.key }, json: { gpus } });
    await push({ gpu_id: 0, name: "a", temp_c: 85 });
    admin.time.now += 1;
    await push({ gpu_id: 1, name: "b", temp_c: 90 }, { gpu_id: 2, name: "c" }, { gpu_id: 3, name: "d", temp_c: 84 });
    admin.time.now += 119_998;
    expect(await hot()).toEqual([1, 0]);
    admin.time.now += 1;
    expect(await hot()).toEqual([1]);
    admin.time.now += 1;
    expect(await hot()).toEqual([]);
  });

  test("lists the backends of which all places have been taken for five minutes", async () => {
    const full = (name: string, forMs?: number) => {
      const fullSince = forMs === undefined ? {} : { fullSince: admin.time.now - forMs };
      return { name, state: "in" as const, since: 0, inFlight: 8, waiting: 0, ...fullSince };
    };
    states = () => [full("free"), full("just now", 5 * minute - 1), full("long", 5 * minute)];
    expect((await overview()).full_backends).toEqual([
      { name: "long", places: 8, since: timestampOf(admin.time.now - 5 * minute) },
    ]);
  });
});
