import { describe, expect, test } from "bun:test";
import { signCookie } from "elysia/utils";
import type { Store } from "../../../src/store/store.ts";
import { password } from "../../support/admin-client.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { cookieOf, startAdmin } from "../support/admin-server.ts";
import { shared } from "../../support/shared.ts";

const day = 24 * 60 * 60 * 1000;

/** Records what is created and extended in the store. */
function spied(real: Store) {
  const created: string[] = [];
  const extensions: Promise<void>[] = [];
  const sessions: Store["sessions"] = {
    ...real.sessions,
    create: (idHash, session) => {
      created.push(idHash);
      return real.sessions.create(idHash, session);
    },
    extend: (idHash, expiresAt) => {
      const extension = real.sessions.extend(idHash, expiresAt);
      extensions.push(extension);
      return extension;
    },
  };
  return { store: { ...real, sessions }, created, extensions };
}

onEachEngine(({ engine }) => {
  describe("a session's cookie", () => {
    let spy: ReturnType<typeof spied>;
    const admin = shared(() => startAdmin({ engine, store: (real) => (spy = spied(real)).store }));

    test("has exactly the specified attributes", async () => {
      const response = await admin.send("POST", "/api/login", { json: { username: "admin", password } });
      const [value = "", ...attributes] = response.headers.getSetCookie()[0]?.split("; ") ?? [];
      expect(value).toMatch(/^session=[0-9a-f]{64}\.[\w%]+$/);
      expect(attributes.toSorted()).toEqual(["HttpOnly", "Max-Age=31536000", "Path=/", "SameSite=Lax", "Secure"]);
    });

    test("is stored only as a hash", async () => {
      const { cookie } = await admin.login();
      const id = cookie.slice("session=".length).split(".", 1)[0] ?? "";
      const idHash = new Bun.CryptoHasher("sha256").update(id).digest("hex");
      expect(spy.created.at(-1)).toBe(idHash);
      expect(spy.created).not.toContain(id);
    });

    test("is new at every login, whatever cookie the browser sent", async () => {
      const first = await admin.login();
      const again = await admin.send("POST", "/api/login", { as: first, json: { username: "admin", password } });
      expect(cookieOf(again)).not.toBe(first.cookie);
      expect(again.json.csrf_token).not.toBe(first.csrf);
    });

    test.each([
      ["GET", "/api/me", {}, 200],
      ["GET", "/api/keys", {}, 200],
      ["GET", "/api/usage/daily", {}, 200],
      ["GET", "/api/usage/daily?days=0", {}, 400],
      ["HEAD", "/api/keys", {}, 200],
      ["DELETE", "/api/keys/999", {}, 404],
      ["POST", "/api/keys", { json: {} }, 400],
    ] as const)("is sent again by %s %s, unchanged", async (method, path, sent, status) => {
      const visitor = await admin.login();
      const response = await admin.send(method, path, { as: visitor, ...sent });
      expect(response.status).toBe(status);
      expect(response.headers.getSetCookie()[0]).toStartWith(`${visitor.cookie}; Max-Age=31536000; `);
      admin.time.now += 61_000;
    });

    test("is sent again with a 403 for a missing CSRF token", async () => {
      const { cookie } = await admin.login();
      const response = await admin.send("POST", "/api/keys", { as: { cookie }, json: { name: "a" } });
      expect([response.status, cookieOf(response)]).toEqual([403, cookie]);
      admin.time.now += 61_000;
    });
  });

  describe("a session", () => {
    let spy: ReturnType<typeof spied>;
    const admin = shared(() => startAdmin({ engine, store: (real) => (spy = spied(real)).store }));

    /** No request waits for the write of its session's expiry, so a request that follows at once may not see it yet. */
    async function statusOf(cookie: string): Promise<number> {
      const { status } = await admin.send("GET", "/api/keys", { as: { cookie } });
      await Promise.all(spy.extensions);
      return status;
    }

    test("expires 365 days after its latest request", async () => {
      const { cookie } = await admin.login();
      admin.time.now += 364 * day;
      expect(await statusOf(cookie)).toBe(200);
      admin.time.now += 364 * day;
      expect(await statusOf(cookie)).toBe(200);
      admin.time.now += 365 * day + 1;
      expect(await statusOf(cookie)).toBe(401);
    });

    test("stores its expiry at most once a minute", async () => {
      const { cookie } = await admin.login();
      spy.extensions.length = 0;
      await Promise.all([statusOf(cookie), statusOf(cookie)]);
      admin.time.now += 59_999;
      await statusOf(cookie);
      expect(spy.extensions).toHaveLength(0);
      admin.time.now += 1;
      await statusOf(cookie);
      // The response does not wait for the write.
      await Promise.all(spy.extensions);
      await statusOf(cookie);
      expect(spy.extensions).toHaveLength(1);
    });

    test("ends at logout on the server too; other sessions continue", async () => {
      const [leaving, staying] = [await admin.login(), await admin.login()];
      const response = await admin.send("POST", "/api/logout", { as: leaving });
      expect(response.text).toBe('{"ok":true}');
      expect(response.headers.getSetCookie()[0]).toMatch(/^session=; Max-Age=0; /);
      expect([await statusOf(leaving.cookie), await statusOf(staying.cookie)]).toEqual([401, 200]);
    });

    test("keeps its CSRF token until it ends", async () => {
      const { cookie, csrf } = await admin.login();
      for (const response of [
        await admin.send("GET", "/api/me", { as: { cookie } }),
        await admin.send("GET", "/api/me", { as: { cookie } }),
      ]) {
        expect(response.json).toEqual({ authenticated: true, username: "admin", csrf_token: csrf });
      }
      expect(csrf).toMatch(/^[0-9a-f]{64}$/);
      admin.time.now += 61_000;
    });

    test("does not exist if the cookie is forged, truncated, altered or signed with another key", async () => {
      const { cookie } = await admin.login();
      const value = decodeURIComponent(cookie.slice("session=".length));
      const [id = "", signature = ""] = value.split(".");
      const values = [
        "",
        ".",
        id,
        `${id}.`,
        `.${signature}`,
        value.slice(0, -1),
        `${id.slice(0, -1)}${id.endsWith("0") ? "1" : "0"}.${signature}`,
        `${value}x`,
        await signCookie(id, "another key of sixteen"),
        await signCookie("0".repeat(64), admin.signingKey),
        "%",
        "%zz",
        "{}",
        '{"a":1}',
        "[1]",
        "x".repeat(8000),
        "한글",
      ];
      for (const forged of values) {
        const cookies = [`session=${forged}`, `session=${encodeURIComponent(forged)}`];
        for (const header of cookies) {
          const response = await admin.send("GET", "/api/me", {
            as: { cookie: Buffer.from(header).toString("latin1") },
          });
          expect([header, response.status, response.text]).toEqual([header, 401, '{"authenticated":false}']);
        }
      }
    });

    test("is found beside malformed cookies", async () => {
      const { cookie } = await admin.login();
      expect(await statusOf(`__proto__=1; a=%zz; =; ;; constructor={"x":1}; ${cookie}; b={`)).toBe(200);
    });

    test("is found among cookies of the same name from other applications of the domain", async () => {
      const { cookie } = await admin.login();
      for (const others of [
        `session=theirs; ${cookie}`,
        `${cookie}; session=theirs`,
        `session=%zz; session=; ${cookie}`,
      ]) {
        expect([others, await statusOf(others)]).toEqual([others, 200]);
      }
    });

    test("can be started by a browser with an invalid cookie", async () => {
      const json = { username: "admin", password };
      const response = await admin.send("POST", "/api/login", { as: { cookie: "session=dead.cookie" }, json });
      expect(response.status).toBe(200);
    });

    test("continues if its expiry cannot be stored, with a line in the log", async () => {
      const full = await startAdmin({
        engine,
        store: (real) => ({
          ...real,
          sessions: { ...real.sessions, extend: () => Promise.reject(new Error("disk full")) },
        }),
      });
      const { cookie } = await full.login();
      full.time.now += day;
      expect((await full.send("GET", "/api/keys", { as: { cookie } })).status).toBe(200);
      expect(full.logged.join("")).toContain("Session expiry not saved");
      await full.stop();
    });

    test.each([
      ["another SECRET_KEY", { secretKey: "another key of sixteen" }],
      ["another ADMIN_USERNAME", { config: { username: "root", metricsToken: undefined } }],
    ])("ends with %s", async (_, overrides) => {
      const { cookie } = await admin.login();
      const restarted = await startAdmin({ engine, ...overrides, store: () => admin.store });
      restarted.time.now = admin.time.now;
      expect((await restarted.send("GET", "/api/keys", { as: { cookie } })).status).toBe(401);
      expect(await statusOf(cookie)).toBe(200);
      await restarted.stop();
      admin.time.now += 61_000;
    });
  });
});
