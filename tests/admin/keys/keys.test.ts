import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import { maskedKeysJson } from "../../../src/admin/keys/body.ts";
import { maskKey } from "../../../src/domain/keys.ts";
import { limitNames } from "../../../src/domain/limits.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { usageAt } from "../../store/test-store.ts";
import { startAdmin } from "../support/admin-server.ts";
import { shared } from "../../support/shared.ts";

const noLimits = Object.fromEntries(limitNames.map((name) => [name, null]));

onEachEngine(({ engine }) => {
  const admin = shared(() => startAdmin({ engine }));
  const owner = shared(() => admin.login());
  const create = (json: unknown) => admin.send("POST", "/api/keys", { as: owner, json });
  const change = (id: number | string, json: unknown) => admin.send("PATCH", `/api/keys/${id}`, { as: owner, json });

  describe("POST /api/keys", () => {
    test("generates an active, unused key of 32 hexadecimal digits and responds with it in full", async () => {
      const response = await create({ name: "first" });
      expect(response.status).toBe(201);
      expect(response.json).toEqual({
        id: expect.any(Number),
        key: expect.stringMatching(/^[0-9a-f]{32}$/),
        name: "first",
        is_active: true,
        created_at: "2026-05-01T12:00:00.000+09:00",
        last_used_at: null,
        total_request_count: 0,
        total_input_tokens: 0,
        total_output_tokens: 0,
        total_estimated_tokens: 0,
        expires_at: null,
        scope: "all",
        allowed_models: null,
        allowed_paths: null,
        ...noLimits,
        limits_extra: null,
        used: noLimits,
        limit_states: {},
        refused_today: 0,
        owner: null,
        note: null,
        tags: [],
        users_from: null,
        has_users_secret: false,
        user_limits: null,
        priority: null,
        users_max: null,
        users_required: false,
        notify: false,
        team_id: null,
        user_id: null,
      });
    });

    test("accepts an explicit key, which works at once", async () => {
      const key = "sk-my.own~KEY!";
      expect((await create({ name: "own", key })).json.key).toBe(key);
      expect(await admin.store.keys.findActive(key)).toBeDefined();
    });

    test("accepts an explicit key of 512 characters, the longest", async () => {
      const key = `sk-${"x".repeat(509)}`;
      const response = await create({ name: "long", key });
      expect([response.status, response.json.key]).toEqual([201, key]);
      expect(await admin.store.keys.findActive(key)).toMatchObject({ id: response.json.id });
    });

    test("refuses a key that exists, and changes nothing", async () => {
      await create({ name: "original", key: "twice-1234567890" });
      const response = await create({ name: "copy", key: "twice-1234567890" });
      expect([response.status, response.text]).toEqual([409, '{"error":"Key already exists"}']);
      expect((await admin.store.keys.list()).filter(({ name }) => name === "copy")).toEqual([]);
    });

    test.each([
      ["  trimmed \n", "trimmed"],
      ["x".repeat(120), "x".repeat(120)],
      [`  ${"한".repeat(120)}  `, "한".repeat(120)],
      ["👩🏽‍🚀".repeat(30), "👩🏽‍🚀".repeat(30)],
      ["<b>&amp;\u200f", "<b>&amp;\u200f"],
      ["half a pair \ud800", "half a pair \ufffd"],
    ])("accepts the name %p", async (name, kept) => {
      const response = await create({ name });
      expect([response.status, response.json.name]).toEqual([201, kept]);
      expect((await admin.store.keys.list()).at(-1)?.name).toBe(kept);
    });

    test.each([
      [{}, "name is required"],
      [{ key: "" }, "name is required"],
      [{ name: null }, "name must be a string"],
      [{ name: 7 }, "name must be a string"],
      [{ name: ["a"] }, "name must be a string"],
      [{ name: { toString: "a" } }, "name must be a string"],
      [{ name: "" }, "name must not be empty"],
      [{ name: " \t\n\u3000" }, "name must not be empty"],
      [{ name: "x".repeat(121) }, "name must be at most 120 characters"],
      [{ name: "👍".repeat(121) }, "name must be at most 120 characters"],
      [{ name: "a\0b" }, "name must not contain control characters or overrides of text direction"],
      [{ name: "a", key: null }, "key must be a non-empty string"],
      [{ name: "a", key: "" }, "key must be a non-empty string"],
      [{ name: "a", key: 7 }, "key must be a non-empty string"],
      [{ name: "a", key: "with space" }, "key must contain only visible ASCII characters"],
      [{ name: "a", key: "line\nbreak" }, "key must contain only visible ASCII characters"],
      [{ name: "a", key: "trailing\n" }, "key must contain only visible ASCII characters"],
      [{ name: "a", key: "null\0" }, "key must contain only visible ASCII characters"],
      [{ name: "a", key: "ключ" }, "key must contain only visible ASCII characters"],
      [{ name: "a", key: "x".repeat(513) }, "key must be at most 512 characters"],
    ])("refuses %j", async (json, error) => {
      const before = await admin.store.keys.list();
      const response = await create(json);
      expect([response.status, response.json]).toEqual([400, { error }]);
      expect(await admin.store.keys.list()).toEqual(before);
    });

    test("makes an inactive key if it is told to", async () => {
      const response = await create({ name: "off", is_active: false });
      expect([response.status, response.json.is_active]).toEqual([201, false]);
      expect((await create({ name: "on", is_active: true, _csrf: "x" })).json.is_active).toBe(true);
    });

    const many = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`f${index}`, 1]));
    test.each([
      [{ name: "a", request_per_minute: 5 }, "Unknown field: request_per_minute"],
      [{ name: "a", id: 7, total_input_tokens: 5 }, "Unknown fields: id, total_input_tokens"],
      [{ name: "a", end_running: true }, "Unknown field: end_running"],
      [{ name: "a", constructor: 1, toString: 1 }, "Unknown fields: constructor, toString"],
      [{ name: "a", ["x".repeat(200)]: 1 }, `Unknown field: ${"x".repeat(64)}`],
      [{ name: "a", ...many }, "Unknown fields: f0, f1, f2, f3, f4 and 4 more"],
      [{ name: "", unknown: 1 }, "name must not be empty"],
      [{ unknown: 1 }, "name is required"],
      [{ name: "a", is_active: null }, "is_active must be a boolean"],
    ])("refuses %j, because a misspelt limit would make a key without it", async (json, error) => {
      const before = await admin.store.keys.list();
      const response = await create(json);
      expect([response.status, response.json]).toEqual([400, { error }]);
      expect(await admin.store.keys.list()).toEqual(before);
    });
  });

  describe("GET /api/keys", () => {
    test("lists by id, masks every key, and shows times in Seoul", async () => {
      const made = await create({ name: "listed", key: "abcd-efgh-ijkl-mnop" });
      const sums = { requestCount: 2, inputTokens: 30, outputTokens: 4 };
      await admin.store.usage.add([usageAt(made.json.id, admin.time.now, sums)]);
      const response = await admin.send("GET", "/api/keys", { as: owner });
      const ids = response.json.map(({ id }: { id: number }) => id);
      expect(ids).toEqual(ids.toSorted((left: number, right: number) => left - right));
      expect(response.json.at(-1)).toMatchObject({
        key: "abcd…mnop",
        last_used_at: "2026-05-01T12:00:00.000+09:00",
        total_request_count: 2,
        total_input_tokens: 30,
        total_output_tokens: 4,
      });
      expect(response.text).not.toContain("efgh");
    });

    test.each([
      ["3f2a5555555555555555555555559c1b", "3f2a…9c1b"],
      ["0123456789abcdef", "0123…cdef"],
      ["0123456789abcde", "…"],
      ["x", "…"],
    ])("masks %s as %s", (key, masked) => {
      expect(maskKey(key)).toBe(masked);
    });
  });

  describe("PATCH /api/keys/<id>", () => {
    let key: { id: number; key: string };
    beforeAll(async () => {
      key = await admin.createKey("to be changed");
    });
    afterEach(() => admin.store.keys.update(key.id, { name: "to be changed", isActive: true }));

    test("deactivates a key for the very next request, and activates it again", async () => {
      const off = await change(key.id, { is_active: false });
      expect([off.status, off.json.is_active, off.json.name]).toEqual([200, false, "to be changed"]);
      expect(await admin.store.keys.findActive(key.key)).toBeUndefined();
      expect((await change(key.id, { is_active: true })).json.is_active).toBe(true);
      expect(await admin.store.keys.findActive(key.key)).toMatchObject({ id: key.id });
    });

    test("renames, trims the name, and responds without the full key", async () => {
      const response = await change(key.id, { name: " renamed " });
      expect([response.json.name, response.json.is_active]).toEqual(["renamed", true]);
      expect(response.text).not.toContain(key.key);
    });

    test("changes both at once", async () => {
      expect((await change(key.id, { name: "both", is_active: false })).json).toMatchObject({
        name: "both",
        is_active: false,
      });
    });

    test.each([
      [{}, "No fields to update"],
      [{ key: "another", id: 7 }, "No fields to update"],
      [{ _csrf: "x" }, "No fields to update"],
      [{ name: "changed", request_per_minute: 5 }, "Unknown field: request_per_minute"],
      [{ name: null }, "name must be a string"],
      [{ name: "" }, "name must not be empty"],
      [{ name: "x".repeat(121) }, "name must be at most 120 characters"],
      [{ is_active: null }, "is_active must be a boolean"],
      [{ is_active: 1 }, "is_active must be a boolean"],
      [{ is_active: "false" }, "is_active must be a boolean"],
      [{ name: "good", is_active: "bad" }, "is_active must be a boolean"],
      [{ name: "", is_active: false }, "name must not be empty"],
    ])("refuses %j, and changes nothing", async (json, error) => {
      const response = await change(key.id, json);
      expect([response.status, response.json]).toEqual([400, { error }]);
      expect((await admin.store.keys.list()).find(({ id }) => id === key.id)).toMatchObject({
        name: "to be changed",
        isActive: true,
      });
    });

    test("checks the body before it looks for the key", async () => {
      expect((await change(999_999, {})).status).toBe(400);
    });
  });

  const unknownIds = [
    "999999",
    "0",
    "-1",
    "1.0",
    "01",
    "1e1",
    "abc",
    "9007199254740993",
    "99999999999999999999",
    "%00",
    "%zz",
    "1%2F2",
    "%F0%9F",
  ];

  test.each(unknownIds)("no key has the id %s", async (id) => {
    for (const response of [
      await change(id, { name: "a" }),
      await admin.send("POST", `/api/keys/${id}/rotate`, { as: owner, json: {} }),
      await admin.send("DELETE", `/api/keys/${id}`, { as: owner }),
    ]) {
      expect([response.status, response.text]).toEqual([404, '{"error":"Key not found"}']);
    }
  });

  describe("DELETE /api/keys/<id>", () => {
    test("removes the key at once; a second time it is not found", async () => {
      const key = await admin.createKey("short-lived");
      const path = `/api/keys/${key.id}`;
      expect((await admin.send("DELETE", path, { as: owner })).text).toBe('{"ok":true}');
      expect(await admin.store.keys.findActive(key.key)).toBeUndefined();
      expect((await admin.send("DELETE", path, { as: owner })).status).toBe(404);
    });

    test("never reuses the id", async () => {
      const { id } = await admin.createKey("the latest");
      await admin.send("DELETE", `/api/keys/${id}`, { as: owner });
      expect((await create({ name: "the next" })).json.id).toBeGreaterThan(id);
    });

    test("keeps the key's usage under its last name", async () => {
      const { id } = await admin.createKey("before");
      await change(id, { name: "its last name" });
      await admin.store.usage.add([usageAt(id, admin.time.now, { inputTokens: 11, outputTokens: 22 })]);
      const totals = await admin.send("GET", "/api/usage/total", { as: owner });
      await admin.send("DELETE", `/api/keys/${id}`, { as: owner });
      for (const path of ["/api/usage/daily", "/api/usage/history"]) {
        expect((await admin.send("GET", path, { as: owner })).text).toContain(
          `"key_id":${id},"key_name":"its last name"`,
        );
      }
      const totalsAfter = await admin.send("GET", "/api/usage/total", { as: owner });
      expect(totals.json.output_tokens - totalsAfter.json.output_tokens).toBe(22);
    });
  });

  describe("a long list of keys", () => {
    test("contains each key once, by id, and is read in slices", async () => {
      const there = (await admin.store.keys.list()).length;
      for (let n = 0; n < 450; n++) {
        await admin.store.keys.create({ name: `many ${n}`, key: `sk-many-${n}-0123456789`, createdAt: 0 });
      }
      const response = await admin.send("GET", "/api/keys", { as: owner });
      expect(response.json).toHaveLength(there + 450);
      expect(response.json.slice(there).map(({ name }: { name: string }) => name)).toEqual(
        Array.from({ length: 450 }, (_, n) => `many ${n}`),
      );
      expect(response.json.at(-1)).toMatchObject({ key: "sk-m…6789", is_active: true, total_request_count: 0 });
      expect(response.text).not.toContain("sk-many");
      const ofOne = async (query: string) =>
        (await admin.send("GET", `/api/keys?${query}`, { as: owner })).json.map(({ name }: { name: string }) => name);
      const first = await admin.send("GET", "/api/keys?limit=150", { as: owner });
      expect(first.json).toEqual(response.json.slice(0, 150));
      const known = { "if-none-match": first.headers.get("etag") ?? "" };
      const again = () => admin.send("GET", "/api/keys?limit=150", { as: owner, headers: known });
      expect([(await again()).status, (await again()).text]).toEqual([304, ""]);
      await admin.store.keys.update(response.json[149].id, { name: "renamed" });
      expect([(await again()).status, (await again()).json.at(-1).name]).toEqual([200, "renamed"]);
      expect(await admin.send("GET", "/api/keys?limit=0", { as: owner })).toMatchObject({ status: 400 });
      await admin.store.keys.update(response.json[149].id, { name: response.json[149].name });
      const { id } = response.json.at(-150);
      expect(await ofOne(`key_id=${id}`)).toEqual(["many 300"]);
      expect(await ofOne(`key_id=${id}&search=many 301`)).toEqual([]);
      await admin.store.keys.delete(id);
      expect(await ofOne(`key_id=${id}`)).toEqual([]);
      expect(await ofOne(`key_id=${Number.MAX_SAFE_INTEGER}`)).toEqual([]);
      await admin.store.keys.create({ name: "many 450", key: `sk-many-450-0123456789`, createdAt: 0 });
      expect(await Array.fromAsync(maskedKeysJson(admin.store, {}))).toHaveLength(Math.ceil((there + 450) / 100));
    });

    test("is empty without any key", async () => {
      const empty = await startAdmin({ engine });
      const response = await empty.send("GET", "/api/keys", { as: await empty.login() });
      expect(response.text).toBe("[]");
      await empty.stop();
    });
  });
});
