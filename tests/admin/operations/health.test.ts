import { expect, test } from "bun:test";
import { shared } from "../../support/shared.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { startAdmin, type Visitor } from "../support/admin-server.ts";
import { StorageError } from "../../../src/store/storage-error.ts";
import type { Store } from "../../../src/store/store.ts";
import type { Facts } from "../../../src/watching/state-rules.ts";

const out = { backends: [{ name: "gpu-a", isOut: true, cause: "ECONNREFUSED" }] };
const backIn = { backends: [{ name: "gpu-a", isOut: false }] };

/** Every method of these nouns fails while the database is away. */
function awayable(real: Store, isAway: () => boolean): Store {
  const wrap = <Noun extends object>(noun: Noun): Noun =>
    Object.fromEntries(
      Object.entries(noun).map(([name, method]: [string, (...args: unknown[]) => unknown]) => [
        name,
        (...args: unknown[]) => (isAway() ? Promise.reject(new StorageError("away")) : method(...args)),
      ]),
    ) as Noun;
  const { sessions, settings, states, tokens, audit } = real;
  return {
    ...real,
    ...Object.fromEntries(
      Object.entries({ sessions, settings, states, tokens, audit }).map(([name, noun]) => [name, wrap<object>(noun)]),
    ),
  };
}

onEachEngine(({ engine }) => {
  let writable = true;
  let isAway = false;
  let checks = 0;
  let facts: Partial<Facts> = {};
  const admin = shared(() =>
    startAdmin({
      engine,
      facts: () => facts,
      store: (real) => ({
        ...awayable(real, () => isAway),
        checkWritable: async () => {
          checks += 1;
          if (!writable) throw new StorageError("disk full at /var/lib/tollgate");
          await real.checkWritable();
        },
      }),
    }),
  );
  const owner = shared(() => admin.login());

  const send = (path: string, as?: Visitor, headers = {}) => {
    admin.time.now += 10_000;
    return admin.send("GET", path, { ...(as && { as }), headers });
  };
  const states = async () => (await send("/api/states", owner)).json;
  const silence = (json: object, as: Visitor = owner) => admin.send("POST", "/api/states/silence", { as, json });
  const inAnHour = () => new Date(admin.time.now + 3_600_000).toISOString();

  test("GET /healthz responds with 200 even if the database is down", async () => {
    writable = false;
    const response = await admin.send("GET", "/healthz");
    expect([response.status, response.text]).toEqual([200, '{"status":"ok"}']);
    writable = true;
  });

  test("GET /readyz responds with 503 while the database cannot be written, and says since when", async () => {
    expect((await send("/readyz")).json).toEqual({ status: "ready", states: [] });
    writable = false;
    const first = await send("/readyz");
    expect([first.status, first.json.status]).toEqual([503, "unavailable"]);
    expect(first.json.states).toEqual([{ kind: "database_away", since: "2026-05-01T12:00:20.000+09:00" }]);
    expect((await send("/readyz")).json).toEqual(first.json);
    writable = true;
    expect((await send("/readyz")).json).toEqual({ status: "ready", states: [] });
  });

  test("GET /readyz is ready though a backend is out, and tells all of it to those who are known", async () => {
    facts = out;
    const { status, json, text } = await send("/readyz");
    expect([status, json]).toMatchObject([200, { status: "ready", states: [{ kind: "backend_out" }] }]);
    expect(text).not.toContain("gpu-a");
    const all = {
      object: "gpu-a",
      what: "gpu-a does not respond (ECONNREFUSED)",
      instance: "host",
      remedy: expect.stringContaining("tollgate check"),
      silenced: null,
    };
    for (const known of [
      await send("/readyz", owner),
      await send("/readyz", {}, { authorization: "Bearer scrape-me" }),
    ])
      expect(known.json.states).toMatchObject([all]);
    facts = backIn;
    expect((await send("/readyz")).json.states).toEqual([]);
  });

  test("GET /readyz looks anew after the clock was set back by hours", async () => {
    expect((await send("/readyz")).status).toBe(200);
    writable = false;
    admin.time.now -= 3 * 3_600_000;
    const { status } = await admin.send("GET", "/readyz");
    writable = true;
    expect(status).toBe(503);
    admin.time.now += 3 * 3_600_000;
  });

  test("GET /readyz writes to the database at most once a second", async () => {
    admin.time.now += 10_000;
    checks = 0;
    await Promise.all(Array.from({ length: 20 }, () => admin.send("GET", "/readyz")));
    expect(checks).toBe(1);
  });

  test("GET /api/states has what is wrong, and what was, with until when", async () => {
    facts = out;
    const { states: standing } = await states();
    expect(standing).toMatchObject([{ kind: "backend_out", object: "gpu-a", instance: "host" }]);
    facts = backIn;
    const after = await states();
    expect(after).toMatchObject({ states: [], unknown_since: null });
    const ended = after.past.find(({ since }: { since: string }) => since === standing[0].since);
    expect(ended).toMatchObject({ kind: "backend_out", object: "gpu-a", count: null });
    expect(Date.parse(ended.until) - Date.parse(ended.since)).toBe(10_000);
  });

  test("a state that is silenced says so until that is over, and one that comes again is told again", async () => {
    facts = { ...out, counts: { waiting: 0, sinceMs: 0, refused: 1 } };
    await states();
    const until = inAnHour();
    expect((await silence({ kind: "backend_out", until, why: "moved" })).status).toBe(200);
    const silenced = async () =>
      (await states()).states.map(({ kind, silenced: one }: { kind: string; silenced: object }) => [kind, one]);
    const said = { until: expect.any(String), why: "moved", by: "admin (password)" };
    expect(await silenced()).toEqual([
      ["counts_refused", null],
      ["backend_out", said],
    ]);
    facts = backIn;
    await states();
    facts = out;
    expect(await silenced()).toContainEqual(["backend_out", null]);
    const again = { kind: "backend_out", instance: "host", until: inAnHour(), why: "again" };
    expect((await silence({ ...again, instance: "other" })).status).toBe(404);
    expect((await silence(again)).status).toBe(200);
    expect(await silenced()).toContainEqual(["backend_out", { ...said, why: "again" }]);
    admin.time.now += 3_600_000;
    expect(await silenced()).toContainEqual(["backend_out", null]);
    const { rows } = (await send("/api/audit?action=state.silence", owner)).json;
    expect(rows[0]).toMatchObject({ action: "state.silence", after: expect.stringContaining("again") });
    facts = { ...backIn, counts: { waiting: 0, sinceMs: 0, refused: 0 } };
  });

  test("a silence needs a time, a reason, and a state that stands", async () => {
    const until = inAnHour();
    const given = [
      { kind: "disk", until },
      { kind: "disk", why: "w" },
      { kind: "disk", until: "soon", why: "w" },
    ];
    for (const one of given) expect((await silence(one)).status).toBe(400);
    expect((await silence({ kind: "disk", until, why: "w" })).status).toBe(404);
    expect((await silence({ kind: "disk", until, why: "w" }, {})).status).toBe(401);
  });

  test("while the database is away, a session that was seen in the last 12 hours reads, unless it was seen to end", async () => {
    const [ended, later, unseen] = [await admin.login(), await admin.login(), await admin.login()];
    const person = await admin.signIn({ name: "Kim", role: "viewer" });
    admin.time.now += 7 * 3_600_000;
    for (const seen of [owner, ended, later, person]) await send("/api/me", seen);
    expect((await admin.send("POST", "/api/logout", { as: ended })).status).toBe(200);
    isAway = true;
    const statusOf = async (as: Visitor, path = "/api/states") => (await send(path, as)).status;
    expect([await statusOf(owner), await statusOf(owner, "/api/me"), await statusOf(later)]).toEqual([200, 200, 200]);
    expect((await states()).unknown_since).not.toBeNull();
    expect([await statusOf(ended), await statusOf(unseen), await statusOf({ cookie: "session=x" })]).toEqual([
      503, 503, 401,
    ]);
    for (const [method, path] of [
      ["POST", "/api/states/silence"],
      ["DELETE", "/api/in-flight/1-1"],
      ["POST", "/api/login"],
    ] as const) {
      const { status, json } = await admin.send(method, path, { as: owner, json: {} });
      expect([status, json.error]).toEqual([503, "The database is not available, try again later"]);
    }
    expect(await statusOf(person)).toBe(200);
    admin.time.now += 6 * 3_600_000;
    // One of who signed in at a provider ends 12 hours after it began.
    expect([await statusOf(later), await statusOf(person)]).toEqual([200, 503]);
    admin.time.now += 6 * 3_600_000;
    expect(await statusOf(later)).toBe(503);
    isAway = false;
    expect((await states()).unknown_since).toBeNull();
  });
});

test.each([
  [null, 409, "NOTICE_URL is not set"],
  [undefined, 200, undefined],
  ["it answers with status 404", 502, "NOTICE_URL: it answers with status 404"],
])("a test notice of which is said %p responds with %p", async (problem, expected, error) => {
  const admin = await startAdmin({ testNotice: async () => problem });
  const { status, json } = await admin.send("POST", "/api/notices/test", { as: await admin.login() });
  expect([status, json.error]).toEqual([expected, error]);
  await admin.stop();
});
