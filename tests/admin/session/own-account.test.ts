import { beforeEach, describe, expect, test } from "bun:test";
import { timestampOf } from "../../../src/time/seoul.ts";
import { shared } from "../../support/shared.ts";
import { password } from "../../support/admin-client.ts";
import { addRequests, requestRow } from "../../store/logged-requests.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { type Admin, startAdmin, type Visitor } from "../support/admin-server.ts";

onEachEngine(({ engine }) => {
  const admin = shared(() => startAdmin({ engine }));
  const owner = shared(() => admin.login());
  // Each test begins with the one session, and with no attempts of a login.
  beforeEach(async () => {
    admin.time.now += 61_000;
    await admin.send("DELETE", "/api/sessions", { as: owner });
  });

  const next = "another horse battery";
  const change = (json: object, of: Admin = admin, as: Visitor = owner) =>
    of.send("POST", "/api/password", { as, json });
  const isLoggedIn = async (as: Visitor): Promise<boolean> =>
    (await admin.send("GET", "/api/me", { as })).status === 200;

  describe("a change of the password", () => {
    test("applies at once, and ends all sessions but the own one", async () => {
      const other = await admin.login();
      const response = await change({ current_password: password, new_password: next });
      expect([response.status, response.text]).toEqual([200, '{"ok":true}']);
      expect([await isLoggedIn(owner), await isLoggedIn(other)]).toEqual([true, false]);
      const logIn = (tried: string) =>
        admin.send("POST", "/api/login", { json: { username: "admin", password: tried } });
      expect([(await logIn(password)).status, (await logIn(next)).status]).toEqual([401, 200]);
      expect(admin.logged.join()).not.toContain(next);
      await change({ current_password: next, new_password: password });
    });

    test("needs the current password, and counts like a login", async () => {
      const tries: number[] = [];
      for (let n = 0; n < 12; n++) tries.push((await change({ current_password: "wrong", new_password: next })).status);
      expect(tries.filter((status) => status === 403)).toHaveLength(10);
      expect(tries.at(-1)).toBe(429);
      expect(await isLoggedIn(owner)).toBe(true);
    });

    test.each([
      [{ new_password: next }, "current_password must be a string"],
      [{ current_password: password, new_password: 12345678 }, "new_password must be a string"],
      [{ current_password: password, new_password: "short12" }, "new_password must have from 8 to 512 characters"],
      [
        { current_password: password, new_password: "x".repeat(513) },
        "new_password must have from 8 to 512 characters",
      ],
    ])("with %j gets 400", async (json, error) => {
      const response = await change(json);
      expect([response.status, response.json]).toEqual([400, { error }]);
    });

    test("is refused if a start would undo it", async () => {
      const fixed = await startAdmin({ engine, passwordFromEnvironment: true });
      const response = await change({ current_password: password, new_password: next }, fixed, await fixed.login());
      expect([response.status, response.text]).toEqual([
        409,
        '{"error":"The password is set by ADMIN_PASSWORD; change it there"}',
      ]);
      await fixed.stop();
    });
  });

  describe("sessions", () => {
    const list = async () => (await admin.send("GET", "/api/sessions", { as: owner })).json;

    test("are listed with where they began, and without what would let anybody use them", async () => {
      await admin.login();
      const sessions = await list();
      expect(sessions).toHaveLength(2);
      expect(sessions.filter((one: { is_current: boolean }) => one.is_current)).toMatchObject([
        {
          username: "admin",
          created_at: "2026-05-01T12:00:00.000+09:00",
          last_seen_at: timestampOf(admin.time.now),
          address: "127.0.0.1",
        },
      ]);
      expect(sessions[0].client).toStartWith("Bun/");
      expect(JSON.stringify(sessions)).not.toContain(owner.csrf);
    });

    test("end one by one", async () => {
      const other = await admin.login();
      const { id } = (await list()).find((one: { is_current: boolean }) => !one.is_current);
      expect((await admin.send("DELETE", `/api/sessions/${id}`, { as: owner })).status).toBe(200);
      expect([await isLoggedIn(owner), await isLoggedIn(other)]).toEqual([true, false]);
      expect((await admin.send("DELETE", `/api/sessions/${id}`, { as: owner })).status).toBe(404);
      expect((await admin.send("DELETE", "/api/sessions/%25", { as: owner })).status).toBe(404);
    });

    test("end all but the own one", async () => {
      const others = [await admin.login(), await admin.login()];
      expect((await admin.send("DELETE", "/api/sessions", { as: owner })).json).toEqual({ ok: true, ended: 2 });
      for (const other of others) expect(await isLoggedIn(other)).toBe(false);
      expect(await list()).toHaveLength(1);
    });
  });

  test("settings say what the request log holds, and what a day less of it frees", async () => {
    const day = 86_400_000;
    const times = [3, 2, 1, 0].map((days) => admin.time.now - days * day);
    expect((await admin.send("GET", "/api/settings", { as: owner })).json.retention[4]).not.toHaveProperty("holds");
    await addRequests(admin.store, ...times.map((at) => requestRow(at)));
    const { json } = await admin.send("GET", "/api/settings", { as: owner });
    expect(json.retention.find(({ data }: { data: string }) => data === "Request log")).toMatchObject({
      holds: "4 requests, about 1 MB; a day less frees 1 MB within 1 min",
    });
  });

  test("settings are shown with their origin, secrets only as set, beside versions, the database and retention", async () => {
    const { json } = await admin.send("GET", "/api/settings", { as: owner });
    const find = (name: string) => json.settings.find((one: { name: string }) => one.name === name);
    expect(find("PORT")).toMatchObject({ value: "1", is_set: true, is_secret: false, origin: "environment" });
    expect(find("SECRET_KEY")).toMatchObject({ value: null, is_set: true, is_secret: true });
    expect(find("MAX_OUTPUT_TOKENS")).toMatchObject({ value: "16384", is_set: false, origin: "default" });
    expect(json.versions.database).toMatch(/^(SQLite|PostgreSQL) \d+\./);
    expect(json.database.size_bytes).toBeGreaterThan(10_000);
    const tables = Object.fromEntries(
      json.database.tables.map((one: { name: string; rows: number }) => [one.name, one.rows]),
    );
    expect(tables).toMatchObject({ sessions: 1, keys: 0 });
    const retention = json.retention.map(({ data, keeps }: { data: string; keeps: string }) => [data, keeps]);
    expect(Object.fromEntries(retention)).toMatchObject({
      "Totals by hour and day": "without limit",
      "Request log": "7 days, at most 5,000,000 requests",
      "GPUs by minute and hour": "32 days",
    });
    const command = json.database.kind === "sqlite" ? /^tollgate backup --keep / : /^pg_dump .*"\$DATABASE_URL"$/;
    expect(json.backup).toEqual({ succeeded_at: null, problem: null, command: expect.stringMatching(command) });
  });
});
