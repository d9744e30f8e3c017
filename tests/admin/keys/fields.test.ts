import { beforeAll, describe, expect, test } from "bun:test";
import { onEachEngine } from "../../store/each-engine.ts";
import { startAdmin } from "../support/admin-server.ts";
import { shared } from "../../support/shared.ts";

onEachEngine(({ engine }) => {
  let id: number;
  const admin = shared(() => startAdmin({ engine }));
  const owner = shared(() => admin.login());
  beforeAll(async () => {
    id = (await admin.createKey("limited")).id;
  });
  const change = (json: unknown) => admin.send("PATCH", `/api/keys/${id}`, { as: owner, json });
  const create = (json: object) => admin.send("POST", "/api/keys", { as: owner, json: { name: "new", ...json } });

  const fields = {
    expires_at: "2026-06-01T00:00:00.000+09:00",
    scope: "inference",
    allowed_models: ["gpt-4*", "qwen"],
    allowed_paths: ["/v1/chat/*", "/v1/models"],
    max_concurrency: 2,
    requests_per_minute: 60,
    tokens_per_minute: 1000,
    tokens_per_day: 20_000,
    tokens_per_week: 100_000,
    tokens_per_month: 300_000,
    owner: "Kim",
    note: 'for the "demo"\nuntil June',
    tags: ["team-a", "demo"],
  };
  const cleared = { ...Object.fromEntries(Object.keys(fields).map((name) => [name, null])), scope: "all", tags: [] };
  const listed = async () =>
    (await admin.send("GET", "/api/keys", { as: owner })).json.find((key: { id: number }) => key.id === id);

  describe("the fields of a key", () => {
    test("are taken by POST and listed", async () => {
      const response = await create(fields);
      expect([response.status, response.json]).toEqual([201, expect.objectContaining(fields)]);
    });

    test("are changed by PATCH one by one, and cleared by null", async () => {
      for (const [name, value] of Object.entries(fields)) {
        expect((await change({ [name]: value })).json).toMatchObject({ [name]: value });
      }
      expect(await listed()).toMatchObject(fields);
      for (const name of Object.keys(fields)) await change({ [name]: null });
      expect(await listed()).toMatchObject(cleared);
    });

    test("that two changes set at once both hold", async () => {
      await Promise.all([
        change({ tokens_per_day: 5 }),
        change({ requests_per_minute: 6 }),
        change({ max_concurrency: 7 }),
      ]);
      expect(await listed()).toMatchObject({ tokens_per_day: 5, requests_per_minute: 6, max_concurrency: 7 });
      await change({ tokens_per_day: null, requests_per_minute: null, max_concurrency: null });
    });

    test("are trimmed, lower-cased and made unique where that changes no meaning", async () => {
      const response = await change({
        owner: " Kim ",
        note: " ",
        allowed_models: ["A", "a ", "B*"],
        tags: ["x", " x"],
      });
      expect(response.json).toMatchObject({ owner: "Kim", note: null, allowed_models: ["a", "b*"], tags: ["x"] });
      await change({ owner: null, allowed_models: null, tags: null });
    });

    test.each([
      ["2026-06-01T00:00:00Z", "2026-06-01T09:00:00.000+09:00"],
      ["2026-06-01T00:00-01:00", "2026-06-01T10:00:00.000+09:00"],
      ["2024-02-29T00:00:00.123456+09:00", "2024-02-29T00:00:00.123+09:00"],
      ["9999-12-31T14:59:59.999Z", "9999-12-31T23:59:59.999+09:00"],
      ["0000-01-01T00:00:00+09:00", "0000-01-01T00:00:00.000+09:00"],
    ])("accept the time %s, and as it is shown", async (given, shown) => {
      for (const time of [given, shown]) expect((await change({ expires_at: time })).json.expires_at).toBe(shown);
      await change({ expires_at: null });
    });

    test.each([
      [{ expires_at: 7 }, "expires_at must be a string"],
      ...[
        "2026-06-01",
        "2026-06-01T00:00:00",
        "2026-02-30T00:00:00Z",
        "2026-06-01T25:00:00Z",
        "9999-12-31T15:00:00Z",
        "0000-01-01T00:00:00+09:01",
        "tomorrow",
        "",
      ].map((given) => [{ expires_at: given }, "expires_at must be an ISO 8601 timestamp with an offset"] as const),
      [{ scope: "admin" }, "scope must be one of all, inference, gpu"],
      [{ scope: "__proto__" }, "scope must be one of all, inference, gpu"],
      [{ allowed_paths: [] }, "allowed_paths must not be empty"],
      ...[
        "/v1",
        "/v1/",
        "chat/*",
        "/v1/a%20b",
        "/v1//a",
        "/v1/a/",
        "/v1/a;b",
        "/v1/a?b",
        "/v1/é",
        " /v1/a",
        `/v1/${"a".repeat(253)}`,
      ].map(
        (glob) =>
          [
            { allowed_paths: [glob] },
            "allowed_paths entry must begin with /v1/, have at most 256 characters of visible ASCII without %, ;, ?, # and \\, and no empty segment",
          ] as const,
      ),
      [{ allowed_models: "gpt" }, "allowed_models must be an array of strings"],
      [{ allowed_models: [] }, "allowed_models must not be empty"],
      [{ allowed_models: [7] }, "allowed_models entry must be a string"],
      [{ allowed_models: [" "] }, "allowed_models entry must not be empty"],
      [{ allowed_models: ["a*b"] }, "allowed_models entry must have * only at its end"],
      [{ allowed_models: Array.from({ length: 101 }, String) }, "allowed_models must have at most 100 entries"],
      ...[0, -1, 1.5, "7", true, [7], 1_000_001].map(
        (given) => [{ max_concurrency: given }, "max_concurrency must be an integer from 1 to 1000000"] as const,
      ),
      [{ requests_per_minute: 0 }, "requests_per_minute must be an integer from 1 to 1000000000"],
      [{ tokens_per_minute: 0 }, "tokens_per_minute must be an integer from 1 to 1000000000000"],
      [{ tokens_per_day: 1e13 }, "tokens_per_day must be an integer from 1 to 1000000000000"],
      [{ tokens_per_month: "many" }, "tokens_per_month must be an integer from 1 to 1000000000000"],
      [{ owner: 7 }, "owner must be a string"],
      [{ owner: "x".repeat(121) }, "owner must be at most 120 characters"],
      [{ note: "x".repeat(1001) }, "note must be at most 1000 characters"],
      [{ note: "a\0b" }, "note must not contain control characters or overrides of text direction"],
      [{ tags: "x" }, "tags must be an array of strings"],
      [{ tags: [null] }, "tag must be a string"],
      [{ tags: ["x".repeat(41)] }, "tag must be at most 40 characters"],
      [{ tags: Array.from({ length: 11 }, String) }, "tags must have at most 10 entries"],
    ])("refuse %j", async (json, error) => {
      for (const response of [await change(json), await create(json)]) {
        expect([response.status, response.json]).toEqual([400, { error }]);
      }
      expect(await listed()).toMatchObject(cleared);
    });

    test("of a note and an owner stay out of the log", async () => {
      await change({ note: "confidential", requests_per_minute: 5 });
      const line = admin.logged.findLast((one) => one.includes("Key changed"));
      expect(line).toContain('"changed":"note requests_per_minute"');
      expect(admin.logged.join("")).not.toContain("confidential");
      await change({ note: null, requests_per_minute: null });
    });
  });

  describe("a search", () => {
    test("finds keys by name, owner, note and tag, in any case", async () => {
      await create({ name: "Findable-Name" });
      await create({ owner: "Findable Owner" });
      await create({ note: "a findable note" });
      await create({ tags: ["findable-tag"] });
      const search = async (text: string) =>
        (await admin.send("GET", `/api/keys?search=${encodeURIComponent(text)}`, { as: owner })).json.length;
      expect(await search("FINDABLE")).toBe(4);
      expect(await search("findable owner")).toBe(1);
      expect(await search("%")).toBe(0);
      expect(await search("x".repeat(1001)).catch(() => 0)).toBeUndefined();
    });
  });

  describe("POST /api/keys/<id>/rotate", () => {
    const rotate = (json: unknown) => admin.send("POST", `/api/keys/${id}/rotate`, { as: owner, json });
    const find = (key: string) => admin.store.keys.findActive(key);

    test("replaces the secret at once and keeps id, totals and limits", async () => {
      const old = (await rotate({})).json.key;
      await change({ tokens_per_day: 9 });
      const response = await rotate({});
      expect([response.status, response.json]).toEqual([
        200,
        expect.objectContaining({ id, key: expect.stringMatching(/^[0-9a-f]{32}$/), tokens_per_day: 9 }),
      ]);
      expect(await find(old)).toBeUndefined();
      expect(await find(response.json.key)).toMatchObject({ id });
      expect((await admin.send("GET", "/api/keys", { as: owner })).text).not.toContain(response.json.key);
    });

    test("accepts the old secret for the grace, through further rotations, and not longer", async () => {
      const first = (await rotate({})).json.key;
      const second = (await rotate({ grace_minutes: 10 })).json.key;
      const third = (await rotate({ grace_minutes: 10_080 })).json.key;
      for (const key of [first, second, third]) expect(await find(key)).toMatchObject({ id });
      expect((await create({ key: first })).status).toBe(409);
      admin.time.now += 10 * 60_000;
      expect([await find(first), await find(second)]).toEqual([undefined, expect.objectContaining({ id })]);
      await change({ is_active: false });
      for (const key of [second, third]) expect(await find(key)).toBeUndefined();
      await change({ is_active: true });
    });

    test.each([-1, 10_081, 1.5, "5", null])("refuses a grace of %p", async (minutes) => {
      const response = await rotate({ grace_minutes: minutes });
      expect([response.status, response.json]).toEqual([
        400,
        { error: "grace_minutes must be an integer from 0 to 10080" },
      ]);
    });

    test("of a deleted key ends its old secrets too", async () => {
      const old = (await rotate({})).json.key;
      await rotate({ grace_minutes: 60 });
      await admin.send("DELETE", `/api/keys/${id}`, { as: owner });
      expect(await find(old)).toBeUndefined();
      expect((await create({ key: old })).status).toBe(201);
    });
  });

  test("a key is not found from its expiry on", async () => {
    const { json } = await create({ expires_at: "2027-01-01T00:00:00Z" });
    admin.time.now = Date.parse("2026-12-31T23:59:59.999Z");
    expect(await admin.store.keys.findActive(json.key)).toMatchObject({ id: json.id });
    admin.time.now += 1;
    expect(await admin.store.keys.findActive(json.key)).toBeUndefined();
  });
});
