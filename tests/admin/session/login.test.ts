import { afterEach, describe, expect, test } from "bun:test";
import { resetPassword } from "../../../src/admin/session/bootstrap.ts";
import { hashPassword, passwordHashSetting } from "../../../src/admin/session/password.ts";
import { password } from "../../support/admin-client.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { type Admin, type TestResponse, startAdmin } from "../support/admin-server.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { shared } from "../../support/shared.ts";

const admin = shared(() => startAdmin({ trustedHops: 1 }));
// Each test starts with the limit unused.
afterEach(() => void (admin.time.now += 61_000));

const attemptAt = (at: Admin, json: unknown, address: string): Promise<TestResponse> =>
  at.send("POST", "/api/login", { json, headers: { "x-forwarded-for": address } });
const attempt = (json: unknown, address = "203.0.113.7"): Promise<TestResponse> => attemptAt(admin, json, address);
const right = { username: "admin", password };
const wrong = { username: "admin", password: "wrong" };

test("the right password starts a session", async () => {
  const response = await attempt(right);
  expect([response.status, response.json.username, response.json.ok]).toEqual([200, "admin", true]);
  expect(response.text).not.toContain(password);
});

test.each([
  ["a wrong password", { username: "admin", password: "wrong" }],
  ["an empty password", { username: "admin", password: "" }],
  ["a truncated password", { username: "admin", password: password.slice(0, -1) }],
  ["an unknown user", { username: "nobody", password }],
  ["a username in other case", { username: "Admin", password }],
  ["an empty username", { username: "", password }],
  ["null characters", { username: "admin\0", password: `${password}\0` }],
  ["half a surrogate pair", { username: "\ud800", password: "\udc00" }],
  ["a password of 8 kB", { username: "admin", password: "x".repeat(8000) }],
])("%s gets the same 401, and no cookie", async (_, json) => {
  const response = await attempt(json);
  expect([response.status, response.text]).toEqual([401, '{"error":"Invalid credentials"}']);
  expect(response.headers.getSetCookie()).toEqual([]);
});

test.each([
  [{}, "username must be a string"],
  [{ username: "admin" }, "password must be a string"],
  [{ username: null, password }, "username must be a string"],
  [{ username: "admin", password: 7 }, "password must be a string"],
  [{ username: ["admin"], password: [password] }, "username must be a string"],
])("%j is refused with a reason", async (json, error) => {
  const response = await attempt(json);
  expect([response.status, response.json.error]).toEqual([400, error]);
});

test("the limiter is asked before the body is parsed, so a broken body counts too", async () => {
  const headers = { "x-forwarded-for": "203.0.113.16", "content-type": "application/json" };
  const broken = () => admin.send("POST", "/api/login", { raw: "{", headers });
  for (let round = 0; round < 10; round += 1) expect((await broken()).status).toBe(400);
  expect((await broken()).status).toBe(429);
});

test("a flood from many addresses gets a response to every request, but few passwords are verified", async () => {
  const mayVerify = Promise.withResolvers<void>();
  let counted = 0;
  const flooded = await startAdmin({
    trustedHops: 1,
    passwordHash: await hashPassword(password),
    store: (real) => ({
      ...real,
      settings: {
        ...real.settings,
        async find(name) {
          if (name === passwordHashSetting) await mayVerify.promise;
          return real.settings.find(name);
        },
      },
      sessions: {
        ...real.sessions,
        countLoginAttempt: (limits, now) => {
          counted += 1;
          return real.sessions.countLoginAttempt(limits, now);
        },
      },
    }),
  });
  const statuses: number[] = [];
  const flood = (network: number, count: number) =>
    Array.from({ length: count }, async (_, host) =>
      statuses.push((await attemptAt(flooded, wrong, `198.51.${network}.${host}`)).status),
    );
  // Two are verified and 24 wait; eight further places are for clients that logged in before.
  const first = flood(0, 200);
  await pollUntil(() => statuses.length === 200 - 26);
  const before = counted;
  await Promise.all(flood(1, 100));
  expect(new Set(statuses)).toEqual(new Set([429]));
  // What is refused does not reach the database.
  expect(counted).toBe(before);
  mayVerify.resolve();
  await Promise.all(first);
  expect(statuses.filter((status) => status === 401)).toHaveLength(26);
  expect((await attemptAt(flooded, right, "203.0.113.99")).status).toBe(200);
  await flooded.stop();
});

test("the log shows attempts, but no username or password from them", async () => {
  admin.logged.length = 0;
  await attempt({ username: "my-secret-in-the-wrong-field", password: "guess-1" }, "203.0.113.14");
  const log = admin.logged.join("");
  expect(log).toContain("203.0.113.14");
  expect(log).not.toMatch(/my-secret|guess-1/);
});

onEachEngine(({ engine }) => {
  describe("the limit of 10 a minute", () => {
    const limited = shared(() => startAdmin({ engine, trustedHops: 1 }));
    // Each test starts with the limit unused.
    afterEach(() => void (limited.time.now += 61_000));
    const attemptFrom = (json: unknown, address: string): Promise<TestResponse> => attemptAt(limited, json, address);
    const used = async (address: string) => {
      const statuses = await Promise.all(Array.from({ length: 10 }, () => attemptFrom(wrong, address)));
      expect(statuses.map(({ status }) => status)).toEqual(Array<number>(10).fill(401));
    };

    test("refuses the eleventh attempt, right or wrong, with the time to wait", async () => {
      await used("203.0.113.7");
      for (const json of [wrong, right]) {
        const response = await attemptFrom(json, "203.0.113.7");
        expect([response.status, response.text]).toEqual([429, '{"error":"Too many login attempts, try again later"}']);
        expect(Number(response.headers.get("retry-after"))).toBeWithin(1, 61);
      }
    });

    test("ends after the time that Retry-After names", async () => {
      const { now } = limited.time;
      await attemptFrom(wrong, "203.0.113.8");
      limited.time.now += 20_700;
      for (let round = 0; round < 9; round += 1) await attemptFrom(wrong, "203.0.113.8");
      // 39.3 seconds remain.
      const refused = await attemptFrom(right, "203.0.113.8");
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "40"]);
      limited.time.now = now + 59_999;
      expect((await attemptFrom(right, "203.0.113.8")).headers.get("retry-after")).toBe("1");
      limited.time.now = now + 20_700 + 40_000;
      expect((await attemptFrom(right, "203.0.113.8")).status).toBe(200);
    });

    test("counts right passwords too", async () => {
      for (let round = 0; round < 10; round += 1) expect((await attemptFrom(right, "203.0.113.9")).status).toBe(200);
      expect((await attemptFrom(right, "203.0.113.9")).status).toBe(429);
    });

    test("applies to each address separately", async () => {
      await used("203.0.113.10");
      expect((await attemptFrom(right, "203.0.113.11")).status).toBe(200);
    });

    test("applies to all addresses of an IPv6 network together", async () => {
      await used("2001:db8::1");
      expect((await attemptFrom(right, "2001:db8::ffff:2")).status).toBe(429);
      expect((await attemptFrom(right, "2001:db8:0:1::1")).status).toBe(200);
    });

    test("costs the database nothing for an address that it refuses, until its time has passed", async () => {
      let counted = 0;
      const observed = await startAdmin({
        engine,
        trustedHops: 1,
        store: (real) => ({
          ...real,
          sessions: {
            ...real.sessions,
            countLoginAttempt: (limits, now) => {
              counted += 1;
              return real.sessions.countLoginAttempt(limits, now);
            },
          },
        }),
      });
      const headers = { "x-forwarded-for": "203.0.113.15" };
      const fail = () => observed.send("POST", "/api/login", { json: wrong, headers });
      for (let round = 0; round < 50; round += 1) await fail();
      expect(counted).toBe(11);
      observed.time.now += 60_000;
      expect([(await fail()).status, counted]).toEqual([401, 12]);
      await observed.stop();
    });

    test("does not count requests that are not JSON, which a page of another site could send", async () => {
      const forged = {
        raw: JSON.stringify(right),
        headers: { "content-type": "text/plain", "x-forwarded-for": "203.0.113.13" },
      };
      for (let round = 0; round < 12; round += 1)
        expect((await limited.send("POST", "/api/login", forged)).status).toBe(415);
      expect((await attemptFrom(right, "203.0.113.13")).status).toBe(200);
    });
  });

  test("a password that is replaced during its verification starts no session", async () => {
    const raced = await startAdmin({
      engine,
      store: (real) => ({
        ...real,
        sessions: {
          ...real.sessions,
          create: async (idHash, session) => {
            await resetPassword(real, "a new one");
            await real.sessions.create(idHash, session);
          },
        },
      }),
    });
    const response = await raced.send("POST", "/api/login", { json: right });
    expect([response.status, response.headers.getSetCookie()]).toEqual([401, []]);
    await raced.stop();
  });
});
