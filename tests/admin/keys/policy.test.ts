import { beforeEach, expect, test } from "bun:test";
import { shared } from "../../support/shared.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { startAdmin } from "../support/admin-server.ts";
import { limitNames } from "../../../src/domain/limits.ts";

onEachEngine(({ engine }) => {
  const admin = shared(() => startAdmin({ engine }));
  const owner = shared(() => admin.login());
  const send = (method: string, path: string, json?: unknown) => admin.send(method, path, { as: owner, json });
  const put = (defaults: object) => send("PUT", "/api/key-policy", { defaults });
  const create = async (fields: object = {}) => (await send("POST", "/api/keys", { name: "k", ...fields })).json;
  beforeEach(async () => void (await put({})));

  const names = [...limitNames, "priority", "expires_in_days", "allowed_models", "team_id"];
  const ceilings = ["max_keys", ...limitNames, "priority", "expires_in_days"];
  const noCeilings = Object.fromEntries(ceilings.map((name) => [name, null]));
  const none = Object.fromEntries(names.map((name) => [name, null]));

  test("without a policy a new key has no limits", async () => {
    expect((await send("GET", "/api/key-policy")).json).toEqual({ defaults: none, member: noCeilings });
    const { expires_in_days: _, ...free } = none;
    expect(await create()).toMatchObject({ ...free, expires_at: null });
  });

  test("a new key takes what its body leaves out, and null means none", async () => {
    const team = (await send("POST", "/api/teams", { name: "ml" })).json.id as number;
    const defaults = { tokens_per_day: 1000, max_concurrency: 4, expires_in_days: 30, team_id: team };
    const set = await put({ ...defaults, allowed_models: [" Qwen* ", "qwen*"] });
    expect([set.status, set.json]).toEqual([
      200,
      { defaults: { ...none, ...defaults, allowed_models: ["qwen*"] }, member: noCeilings },
    ]);
    expect((await send("GET", "/api/key-policy")).json).toEqual(set.json);
    const of = { tokens_per_day: 1000, max_concurrency: 4, allowed_models: ["qwen*"], team_id: team };
    const made = await create();
    expect(made).toMatchObject({ ...of, tokens_per_month: null });
    expect(Date.parse(made.expires_at) - Date.parse(made.created_at)).toBe(30 * 86_400_000);
    const own = { tokens_per_day: 5, tokens_per_month: 7, allowed_models: null, expires_at: null, team_id: null };
    expect(await create(own)).toMatchObject({ ...own, max_concurrency: 4 });
    expect((await send("PATCH", `/api/keys/${made.id}`, { max_concurrency: null })).json).toMatchObject({
      ...of,
      max_concurrency: null,
    });
  });

  test("a policy whose team is gone makes keys without one", async () => {
    const team = (await send("POST", "/api/teams", { name: "gone" })).json.id as number;
    await put({ tokens_per_day: 9, team_id: team });
    await send("DELETE", `/api/teams/${team}`);
    expect(await create()).toMatchObject({ tokens_per_day: 9, team_id: null });
    const { status, json } = await send("POST", "/api/keys", { name: "k", team_id: team });
    expect([status, json]).toEqual([400, { error: "team_id must be the id of a team" }]);
  });

  test("is replaced whole, with one row in the record of changes", async () => {
    await put({ tokens_per_day: 9, expires_in_days: 1 });
    await put({ tokens_per_day: 10 });
    await put({ tokens_per_day: 10 });
    const { rows } = (await send("GET", "/api/audit?action=key_policy.set")).json;
    expect(rows.slice(0, 2)).toMatchObject([
      { target: "key_policy", before: '{"tokens_per_day":9,"expires_in_days":1}', after: '{"tokens_per_day":10}' },
      { target: "key_policy", before: null, after: '{"tokens_per_day":9,"expires_in_days":1}' },
    ]);
  });

  test.each<[unknown, string]>([
    [{}, "defaults must be an object"],
    [{ defaults: [] }, "defaults must be an object"],
    [{ defaults: {}, tokens_per_day: 5 }, "Unknown field: tokens_per_day"],
    [{ defaults: { tokens_per_dai: 5 } }, "Unknown field: tokens_per_dai"],
    [{ defaults: { scope: "all" } }, "Unknown field: scope"],
    [{ defaults: { tokens_per_day: 0 } }, "tokens_per_day must be an integer from 1 to 1000000000000"],
    [{ defaults: { expires_in_days: 3651 } }, "expires_in_days must be an integer from 1 to 3650"],
    [{ defaults: { allowed_models: [] } }, "allowed_models must not be empty"],
    [{ defaults: { team_id: 999_999 } }, "team_id must be the id of a team"],
  ])("refuses %j", async (json, error) => {
    const response = await send("PUT", "/api/key-policy", json);
    expect([response.status, response.json]).toEqual([400, { error }]);
  });
});
