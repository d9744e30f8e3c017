import { describe, expect, test } from "bun:test";
import { shared } from "../../support/shared.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { usageIncrement } from "../../store/test-store.ts";
import { startAdmin } from "../support/admin-server.ts";

onEachEngine(({ engine }) => {
  const admin = shared(() => startAdmin({ engine }));
  const owner = shared(() => admin.login());
  const send = (method: string, path: string, json?: unknown) => admin.send(method, path, { as: owner, json });
  let names = 0;
  const create = async (fields: object = {}): Promise<number> =>
    (await send("POST", "/api/teams", { name: `team ${++names}`, ...fields })).json.id;
  const createKey = async (fields: object): Promise<{ id: number; key: string; team_id: number | null }> =>
    (await send("POST", "/api/keys", { name: "k", ...fields })).json;
  const find = (key: string) => admin.store.keys.findActive(key);

  const limits = {
    max_concurrency: 4,
    requests_per_minute: 60,
    tokens_per_minute: 1000,
    tokens_per_day: 20_000,
    tokens_per_week: 100_000,
    tokens_per_month: 300_000,
  };
  const noLimits = Object.fromEntries(Object.keys(limits).map((name) => [name, null]));

  describe("a team", () => {
    test("is made with a name, notes and limits, listed, changed, and deleted", async () => {
      const made = await send("POST", "/api/teams", { name: " ml ", note: "GPUs", tags: ["a", "a"], ...limits });
      const team = { name: "ml", note: "GPUs", tags: ["a"], ...limits, key_count: 0, refused_today: 0 };
      expect([made.status, made.json]).toEqual([201, expect.objectContaining(team)]);
      const { id } = made.json;
      expect(made.json.limit_states.tokens_per_week).toMatchObject({ limit: 100_000, used: 0, left: 100_000 });
      const path = `/api/teams/${id}`;
      expect((await send("GET", path)).json).toEqual(made.json);
      expect((await send("GET", "/api/teams")).json.teams).toContainEqual(made.json);
      const changed = await send("PATCH", path, { name: "ML", tokens_per_day: null, note: null });
      expect([changed.status, changed.json]).toEqual([
        200,
        expect.objectContaining({ ...team, name: "ML", tokens_per_day: null, note: null }),
      ]);
      expect((await send("PATCH", path, noLimits)).json).toMatchObject({ ...noLimits, limit_states: {} });
      expect((await send("DELETE", path)).json).toEqual({ ok: true });
      for (const [method, json] of [["GET"], ["PATCH", { name: "x" }], ["DELETE"]] as const) {
        const { status, json: body } = await send(method, path, json);
        expect([status, body]).toEqual([404, { error: "Team not found" }]);
      }
    });

    test("has a name that no other one has", async () => {
      const [first, second] = [await create({ name: "one" }), await create({ name: "two" })];
      const error = { error: "A team with this name already exists" };
      for (const [method, path] of [
        ["POST", "/api/teams"],
        ["PATCH", `/api/teams/${second}`],
      ] as const) {
        const { status, json } = await send(method, path, { name: " one" });
        expect([status, json]).toEqual([409, error]);
      }
      expect((await send("PATCH", `/api/teams/${first}`, { name: "one" })).status).toBe(200);
      const atOnce = ["a", "b"].map(async () => (await send("POST", "/api/teams", { name: "at once" })).status);
      const status = (await Promise.all(atOnce)).toSorted((a, b) => a - b);
      expect(status).toEqual([201, 409]);
    });

    const extraOf = "limits_extra must be an object of tokens_per_day, tokens_per_week, tokens_per_month";
    test.each<[string, string, unknown, number, string]>([
      ["POST", "", {}, 400, "name is required"],
      ["POST", "", { name: 7 }, 400, "name must be a string"],
      ["POST", "", { name: " " }, 400, "name must not be empty"],
      ["POST", "", { name: "x".repeat(121) }, 400, "name must be at most 120 characters"],
      ["POST", "", { name: "n", tokens_per_weak: 5 }, 400, "Unknown field: tokens_per_weak"],
      ["POST", "", { name: "n", scope: "all" }, 400, "Unknown field: scope"],
      ["POST", "", { name: "n", key: "k" }, 400, "Unknown field: key"],
      [
        "POST",
        "",
        { name: "n", tokens_per_week: 0 },
        400,
        "tokens_per_week must be an integer from 1 to 1000000000000",
      ],
      ["POST", "", { name: "n", note: 7 }, 400, "note must be a string"],
      ["POST", "", { name: "n", tags: "x" }, 400, "tags must be an array of strings"],
      ["PATCH", "/1", {}, 400, "No fields to update"],
      ["PATCH", "/1", { other: 7 }, 400, "No fields to update"],
      ["PATCH", "/1", { note: "n", other: 7 }, 400, "Unknown field: other"],
      ["PATCH", "/1", { max_concurrency: "2" }, 400, "max_concurrency must be an integer from 1 to 1000000"],
      ["PATCH", "/1", { limits_extra: 5 }, 400, extraOf],
      ["PATCH", "/1", { limits_extra: { tokens_per_minute: 5 } }, 400, extraOf],
      [
        "POST",
        "",
        { name: "n", limits_extra: { tokens_per_day: 0 } },
        400,
        "limits_extra.tokens_per_day must be an integer from 1 to 1000000000000",
      ],
      ["PATCH", "/999", { name: "n" }, 404, "Team not found"],
      ["PATCH", "/x", { name: "n" }, 404, "Team not found"],
      ["DELETE", "/0", undefined, 404, "Team not found"],
      ["GET", "/999", undefined, 404, "Team not found"],
    ])("refuses %s %s %j", async (method, path, json, status, error) => {
      const response = await send(method, `/api/teams${path}`, json);
      expect([response.status, response.json]).toEqual([status, { error }]);
    });
  });

  describe("team_id of a key", () => {
    test("is set by POST, PATCH and null, and counts the keys of the team", async () => {
      const id = await create();
      const keyCount = async () => (await send("GET", `/api/teams/${id}`)).json.key_count;
      const [first, second] = [await createKey({ team_id: id }), await createKey({})];
      expect([first.team_id, second.team_id, await keyCount()]).toEqual([id, null, 1]);
      const path = `/api/keys/${second.id}`;
      expect((await send("PATCH", path, { team_id: id })).json.team_id).toBe(id);
      expect(await keyCount()).toBe(2);
      expect((await send("PATCH", path, { team_id: null })).json.team_id).toBeNull();
      expect(await keyCount()).toBe(1);
    });

    test.each([0, 1.5, "1", true, 4711])("%p is refused, and nothing is changed", async (given) => {
      const { id } = await createKey({});
      const error = { error: "team_id must be the id of a team" };
      for (const response of [
        await send("POST", "/api/keys", { name: "n", team_id: given }),
        await send("PATCH", `/api/keys/${id}`, { name: "renamed", team_id: given }),
      ])
        expect([response.status, response.json]).toEqual([400, error]);
      const [{ name, team_id: teamId }] = (await send("GET", `/api/keys?key_id=${id}`)).json;
      expect([name, teamId]).toEqual(["k", null]);
    });

    test("has the limits of the team hold for the next request, and no more once it is left or deleted", async () => {
      const id = await create({ tokens_per_day: 9 });
      const { id: keyId, key } = await createKey({ team_id: id, tokens_per_day: 5, tokens_per_month: 50 });
      const found = async () => {
        const { rules, subjects, teamId } = (await find(key)) ?? {};
        return {
          limits: [rules?.tokens_per_day, rules?.tokens_per_month, rules?.max_concurrency],
          subjects: subjects?.map((one) => [one.id, one.team]),
          teamId,
        };
      };
      const own = [keyId, undefined];
      expect(await found()).toEqual({ limits: [5, 50, null], subjects: [own, [-id, `team ${names}`]], teamId: id });
      await send("PATCH", `/api/teams/${id}`, { tokens_per_day: 2, max_concurrency: 3, name: "renamed" });
      expect(await found()).toEqual({ limits: [2, 50, 3], subjects: [own, [-id, "renamed"]], teamId: id });
      await send("PATCH", `/api/teams/${id}`, noLimits);
      expect(await found()).toEqual({ limits: [5, 50, null], subjects: [own], teamId: id });
      await send("DELETE", `/api/teams/${id}`);
      expect(await find(key)).toMatchObject({ id: keyId });
      expect(await found()).toEqual({ limits: [5, 50, null], subjects: undefined, teamId: undefined });
      const [listed] = (await send("GET", `/api/keys?key_id=${keyId}`)).json;
      expect(listed.team_id).toBeNull();
    });
  });

  describe("GET /api/usage/costs?by=team", () => {
    test("sums what keys used while they were in a team; with no team, it is the whole", async () => {
      const [left, joined] = [await create({ name: "left" }), await create({ name: "joined" })];
      const { id: keyId } = await createKey({ team_id: left });
      const minute = Math.floor(admin.time.now / 60_000);
      const day = (inputTokens: number, teamId?: number, daysAgo = 0) =>
        usageIncrement({ keyId, teamId, minute: minute - daysAgo * 1440, inputTokens, outputTokens: 1, model: "m" });
      // Moved in mid-month: what it used before stays with the first.
      await admin.store.usage.add([day(10, left, 40), day(20, left, 2), day(40, joined), day(80)]);
      const costs = async (query: string) => (await send("GET", `/api/usage/costs?${query}`)).json.rows;
      const of = (rows: { team_id: number; team_name: string; input_tokens: number }[]) =>
        rows.map((row) => [row.team_id, row.team_name, row.input_tokens]);
      const range = `from=2026-03-01&key_id=${keyId}`;
      const all = [
        [0, "", 80],
        [left, "left", 30],
        [joined, "joined", 40],
      ];
      expect(of(await costs(`by=team&${range}`))).toEqual(all);
      const [whole] = await costs(`by=key&${range}`);
      expect([whole.input_tokens, whole.team_id, whole.team_name]).toEqual([150, null, null]);
      expect((await costs(`by=key&${range}&team_id=${left}`))[0].input_tokens).toBe(30);
      expect((await costs(`by=model&${range}&team_id=0`))[0].input_tokens).toBe(80);
      await send("DELETE", `/api/teams/${left}`);
      expect(of(await costs(`by=team&${range}`))).toEqual(all);
      // The specification's counts of keys are theirs alone.
      expect((await send("GET", "/api/usage/summary")).json.input_tokens).toBe(120);
      const daily: { key_id: number; input_tokens: number }[] = (await send("GET", "/api/usage/daily?days=7")).json;
      expect(daily.map((row) => [row.key_id, row.input_tokens])).toEqual([
        [keyId, 120],
        [keyId, 20],
      ]);
      const { points } = (await send("GET", "/api/usage/history?days=30&bucket_minutes=1440")).json;
      expect(points.map((one: { key_id: number }) => one.key_id)).toEqual([keyId, keyId]);
    });
  });
});
