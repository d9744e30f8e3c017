import { describe, expect, test } from "bun:test";
import type { JWTPayload } from "jose";
import type { Configuration } from "oidc-provider";
import { sha256Hex } from "../../../src/admin/session/secrets.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { shared } from "../../support/shared.ts";
import { findFreePort } from "../../support/free-port.ts";
import { RedirectFollower, startProvider, type TestProvider } from "../../support/oidc-provider.ts";
import { type Admin, type Overrides, startAdmin } from "../support/admin-server.ts";

type SignIn = NonNullable<Overrides["signIn"]>;

interface SignedUp extends AsyncDisposable {
  admin: Admin;
  provider: TestProvider;
  /** Goes through the provider with a browser of its own. @returns what the login page is told, and the session */
  signIn(
    change?: (url: URL) => URL | undefined,
    browser?: RedirectFollower,
  ): Promise<{
    told: URLSearchParams;
    cookie: string;
    url: URL;
  }>;
  /** Follows no redirect. */
  ask(path: string, headers?: Record<string, string>): Promise<Response>;
  users(): Promise<Awaited<ReturnType<Admin["store"]["subjects"]["list"]>>>;
}

async function start(
  settings: Partial<SignIn> = {},
  overrides: Overrides = {},
  ofProvider: Configuration = {},
): Promise<SignedUp> {
  const port = findFreePort();
  const consoleUrl = `http://127.0.0.1:${port}`;
  const provider = await startProvider(consoleUrl, ofProvider);
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = provider.settings;
  const signIn: SignIn = {
    issuer,
    clientId,
    clientSecret,
    consoleUrl,
    scopes: "openid profile email offline_access",
    name: "Example",
    isOnly: false,
    groupsClaim: "groups",
    adminGroups: ["ops"],
    viewerGroups: ["readers"],
    defaultRole: "none",
    createsTeams: false,
    checkMs: 3_600_000,
    memberKeysDays: 30,
    ...settings,
  };
  const admin = await startAdmin({ ...overrides, port, signIn });
  admin.time.now = Date.now();
  return {
    admin,
    provider,
    async signIn(change, browser = new RedirectFollower()) {
      const toLogin = (url: URL) => (url.origin === consoleUrl && url.pathname === "/login" ? undefined : url);
      const { url } = await browser.open(`${consoleUrl}/login/oidc?next=/usage`, (to) => toLogin(change?.(to) ?? to));
      const session = browser
        .cookieOf(consoleUrl)
        .split("; ")
        .find((one) => one.startsWith("session="));
      return { told: url.searchParams, cookie: session ?? "", url };
    },
    ask: (path, headers = {}) => fetch(consoleUrl + path, { redirect: "manual", headers }),
    users: () => admin.store.subjects.list({ kind: "user" }),
    async [Symbol.asyncDispose]() {
      await admin.stop();
      await provider[Symbol.asyncDispose]();
    },
  };
}

const hashOf = (cookie: string): string => sha256Hex(decodeURIComponent(cookie).split(/[=.]/)[1] ?? "");

const is = (person: TestProvider["person"]["claims"], sub = "kim") => ({ sub, claims: { name: "Kim", ...person } });

describe("sign-in by OpenID Connect", () => {
  const one = shared(() => start());

  test("creates the user, and a session with the role of its groups for twelve hours", async () => {
    one.provider.person = is({ groups: ["staff", "readers"] });
    const { told, cookie } = await one.signIn();
    expect([...told]).toEqual([
      ["signed_in", "1"],
      ["next", "/usage"],
    ]);
    const [user] = await one.users();
    expect(user).toMatchObject({ name: "Kim", source: one.provider.issuer, external: "kim", isActive: true });
    expect((await one.admin.send("GET", "/api/keys", { as: { cookie } })).status).toBe(200);
    const { csrf_token: csrf } = (await one.admin.send("GET", "/api/me", { as: { cookie } })).json;
    const refused = await one.admin.send("POST", "/api/keys", { as: { cookie, csrf }, json: { name: "no" } });
    expect(refused.status).toBe(403);
    const [{ expiresAt, role, userId } = { expiresAt: 0 }] = await one.admin.store.sessions.list(one.admin.time.now);
    expect([role, userId, expiresAt - one.admin.time.now]).toEqual(["viewer", user?.id ?? 0, 12 * 3_600_000]);
  });

  test.each([
    ["ops", "admin"],
    [["staff", "ops", "readers"], "admin"],
    ["readers", "viewer"],
  ])("gives who is in %j the role %s", async (groups, role) => {
    one.provider.person = is({ groups });
    const { cookie } = await one.signIn();
    const sessions = await one.admin.store.sessions.list(one.admin.time.now);
    expect(sessions.find(({ idHash }) => idHash === hashOf(cookie))?.role).toBe(role as "admin");
  });

  test.each([[undefined], ["OPS"], ["ops readers"], [["ops2", "reader"]], [{ ops: true }]])(
    "lets nobody in whose groups are %j, and keeps no user",
    async (groups) => {
      const sub = crypto.randomUUID();
      one.provider.person = is(groups === undefined ? {} : { groups }, sub);
      const { told, cookie } = await one.signIn();
      expect([told.get("problem"), cookie]).toEqual(["no_role", ""]);
      expect((await one.users()).map(({ external }) => external)).not.toContain(sub);
    },
  );

  test("keeps one user, who has the latest name, and the name of an operator once there is one", async () => {
    one.provider.person = is({ groups: "ops", name: "Robin" }, "robin");
    await one.signIn();
    one.provider.person = is({ groups: "ops", name: "Robin B." }, "robin");
    await one.signIn();
    const find = async () => (await one.users()).filter(({ external }) => external === "robin");
    const [user] = await find();
    expect([user?.name, (await find()).length]).toEqual(["Robin B.", 1]);
    await one.admin.store.subjects.update("user", user?.id ?? 0, { name: "R." });
    await one.signIn();
    expect((await find())[0]?.name).toBe("R.");
  });

  test("keeps a name of which nothing breaks a line or turns it around", async () => {
    one.provider.person = is({ groups: "ops", name: "Eve\u202e\n\0" }, "eve");
    await one.signIn();
    const user = (await one.users()).find(({ external }) => external === "eve");
    expect(user?.name).toBe("Eve\\u202e\\u000a\\u0000");
  });

  test("refuses who an operator has switched off", async () => {
    one.provider.person = is({ groups: "ops" }, "gone");
    await one.signIn();
    const user = (await one.users()).find(({ external }) => external === "gone");
    await one.admin.store.subjects.update("user", user?.id ?? 0, { isActive: false });
    const { told, cookie } = await one.signIn();
    expect([told.get("problem"), cookie]).toEqual(["inactive", ""]);
  });

  test("refuses another nonce, another state, a code that is too old, and what was not begun here", async () => {
    one.provider.person = is({ groups: "ops" });
    const replaced = (path: string, name: string) => (url: URL) => {
      if (url.pathname === path) url.searchParams.set(name, "another");
      return url;
    };
    expect((await one.signIn(replaced("/auth", "nonce"))).told.get("problem")).toBe("invalid");
    expect(one.admin.logged.at(-1)).toContain("nonce");
    expect((await one.signIn(replaced("/login/oidc", "state"))).told.get("problem")).toBe("expired");
    const late = await one.signIn((url) => {
      if (url.pathname === "/login/oidc") one.provider.expireCodes();
      return url;
    });
    expect(late.told.get("problem")).toBe("expired");
    const { told } = await one.signIn((url) => {
      if (url.pathname === "/login/oidc") one.admin.time.now += 11 * 60_000;
      return url;
    });
    one.admin.time.now = Date.now();
    expect(told.get("problem")).toBe("expired");
    const without = await one.ask("/login/oidc?code=1&state=2");
    expect(without.headers.get("location")).toBe("/login?problem=expired");
  });

  test("takes a return once: neither its code nor its state lets anybody in again", async () => {
    one.provider.person = is({ groups: "ops" });
    const browser = new RedirectFollower();
    let [address, kept] = ["", ""];
    await one.signIn((url) => {
      if (url.pathname === "/login/oidc") [address, kept] = [url.href, browser.cookieOf(url.origin)];
      return url;
    }, browser);
    for (const cookie of [browser.cookieOf(one.admin.origin), kept]) {
      const again = await fetch(address, { redirect: "manual", headers: { cookie } });
      expect(again.headers.get("location")).toBe("/login?problem=expired");
      expect(again.headers.getSetCookie().join()).not.toContain("session=");
    }
  });

  test("ends where the provider asks for no sign-in", async () => {
    const { told } = await one.signIn((url) => {
      if (url.pathname === "/auth") url.searchParams.set("prompt", "none");
      return url;
    });
    expect(told.get("problem")).toBe("refused");
  });

  test("keeps what was begun in a cookie that no script and no other site reads", async () => {
    const { headers } = await one.ask("/login/oidc");
    expect(headers.get("cache-control")).toBe("no-store");
    const [cookie] = headers.getSetCookie();
    expect(cookie).toMatch(/^sign_in=[\w.-]+; Max-Age=600; Path=\/login\/oidc; HttpOnly; Secure; SameSite=Lax$/i);
    const to = new URL(headers.get("location") ?? "");
    expect(to.searchParams.get("redirect_uri")).toBe(`${one.admin.origin}/login/oidc`);
    expect(to.searchParams.get("code_challenge_method")).toBe("S256");
    // Nothing of it can be read, or used as a session.
    expect(cookie).not.toContain(to.searchParams.get("state") ?? "");
    const value = cookie?.split(/[=;]/)[1];
    const { status } = await one.admin.send("GET", "/api/keys", { as: { cookie: `session=${value}` } });
    expect(status).toBe(401);
  });

  test("builds no address from Host", async () => {
    const { headers } = await one.ask("/login/oidc", { host: "evil.example" });
    expect(headers.get("location")).toContain(encodeURIComponent(one.admin.origin));
    expect(headers.get("location")).not.toContain("evil");
  });

  test("takes clocks that are 45 s apart, and none that are 90 s apart", async () => {
    one.provider.person = is({ groups: "ops" });
    const { idTokenSeconds } = one.provider;
    one.provider.idTokenSeconds = 5;
    const told: unknown[] = [];
    for (const seconds of [45, -45, 90, -90]) {
      one.admin.time.now = Date.now() + seconds * 1000;
      told.push((await one.signIn()).told.get("problem"));
    }
    one.provider.idTokenSeconds = idTokenSeconds;
    one.admin.time.now = Date.now();
    expect(told).toEqual([null, null, "invalid", "invalid"]);
    expect(one.admin.logged.at(-1)).toContain("the provider's clock is ahead");
  });

  test("goes on where the provider has new keys", async () => {
    one.provider.person = is({ groups: "ops" });
    await one.signIn();
    await one.provider.rotateKeys();
    expect((await one.signIn()).told.get("signed_in")).toBe("1");
  });

  test("leaves the administrator's password where the provider is away", async () => {
    one.provider.person = is({ groups: "ops" });
    const { told } = await one.signIn((url) => {
      if (url.pathname === "/login/oidc") one.provider.isAway = true;
      return url;
    });
    expect(told.get("problem")).toBe("unreachable");
    const { headers } = await one.ask("/login/oidc");
    expect(headers.get("location")).toBe("/login?problem=unreachable");
    await one.admin.login();
    one.provider.isAway = false;
    expect((await one.signIn()).told.get("signed_in")).toBe("1");
  });

  test("tells the login page where to go", async () => {
    const { json } = await one.admin.send("GET", "/api/login");
    expect(json).toEqual({ provider: { name: "Example", url: `${one.admin.origin}/login/oidc`, is_only: false } });
  });
});

describe("groups and teams", () => {
  test("are at the end of a path, and at userinfo if the ID token has none", async () => {
    await using one = await start({ groupsClaim: "realm_access.roles", defaultRole: "member" });
    one.provider.person = is({ realm_access: { roles: ["ops"] } });
    const { cookie } = await one.signIn();
    expect((await one.admin.send("GET", "/api/tokens", { as: { cookie } })).status).toBe(200);
    expect(one.provider.requests.some((url) => url.startsWith("/me"))).toBe(false);
    await using other = await start({}, {}, { conformIdTokenClaims: true });
    other.provider.person = is({ groups: ["ops"] });
    expect((await other.signIn()).told.get("signed_in")).toBe("1");
    expect(other.provider.requests).toContain("/me");
  });

  test("give the first team of ours, unless an operator set one", async () => {
    await using one = await start();
    const { store } = one.admin;
    const made = await Promise.all(
      ["research", "ml"].map((name) => store.subjects.create("team", { name, createdAt: 1 })),
    );
    const [research, ml] = made.map((team) => (typeof team === "string" ? 0 : team.id));
    const teamAfter = async (groups: string[]) => {
      one.provider.person = is({ groups: ["ops", ...groups] });
      await one.signIn();
      return (await one.users())[0]?.teamId;
    };
    expect(await teamAfter(["none", "ml", "research"])).toBe(ml ?? 0);
    expect(await teamAfter(["research"])).toBe(research ?? 0);
    expect(await teamAfter([])).toBeNull();
    const as = await one.admin.login();
    const path = `/api/users/${(await one.users())[0]?.id}`;
    await one.admin.send("PATCH", path, { as, json: { team_id: ml } });
    expect(await teamAfter(["research"])).toBe(ml ?? 0);
    await one.admin.send("PATCH", path, { as, json: { team_by_provider: true } });
    expect(await teamAfter(["research"])).toBe(research ?? 0);
    expect((await store.subjects.list({ kind: "team" })).length).toBe(2);
  });

  test("become teams where OIDC_CREATE_TEAMS is on, but for those that give a role", async () => {
    await using one = await start({ createsTeams: true });
    one.provider.person = is({ groups: ["ops", "physics", "chemistry"] });
    await one.signIn();
    await one.signIn();
    const teams = await one.admin.store.subjects.list({ kind: "team" });
    expect(teams.map(({ name }) => name)).toEqual(["physics"]);
    expect((await one.users())[0]?.teamId).toBe(teams[0]?.id ?? 0);
  });
});

const without = (payload: JWTPayload, name: string): JWTPayload =>
  Object.fromEntries(Object.entries(payload).filter(([other]) => other !== name));

describe("back-channel logout", () => {
  test("ends the session that it names, then those of the person, and nothing else", async () => {
    await using one = await start();
    const password = await one.admin.login();
    const signInAs = async (sub: string) => {
      one.provider.person = is({ groups: "ops" }, sub);
      return { cookie: (await one.signIn()).cookie };
    };
    const all = [await signInAs("kim"), await signInAs("kim"), await signInAs("robin"), password];
    const states = () => Promise.all(all.map(async (as) => (await one.admin.send("GET", "/api/keys", { as })).status));
    const [sid] = one.provider.sids();
    expect(await one.provider.logOut("kim", sid)).toBe(200);
    expect(await states()).toEqual([401, 200, 200, 200]);
    expect((await one.users()).every(({ isActive }) => isActive)).toBe(true);
  });

  test.each<[string, (valid: JWTPayload) => JWTPayload]>([
    ["is for another client", (valid) => ({ ...valid, aud: "another" })],
    ["is of another issuer", (valid) => ({ ...valid, iss: "https://another.example" })],
    ["is an ID token", (valid) => without(valid, "events")],
    ["has a nonce", (valid) => ({ ...valid, nonce: "n" })],
    ["is an hour old", ({ iat = 0, ...valid }) => ({ ...valid, iat: iat - 3600 })],
    ["names nobody", (valid) => without(valid, "sub")],
    ["has no id", (valid) => without(valid, "jti")],
  ])("refuses a token that %s", async (_, change) => {
    const iat = Math.floor(Date.now() / 1000);
    const events = { "http://schemas.openid.net/event/backchannel-logout": {} };
    const valid = { iss: logouts.provider.issuer, aud: "tollgate", sub: "kim", iat, jti: crypto.randomUUID(), events };
    expect(await sendLogout(await logouts.provider.sign(valid))).toBe(200);
    expect(await sendLogout(await logouts.provider.sign(change(valid)))).toBe(400);
  });

  test("refuses a token of somebody else's keys, none, and a long body", async () => {
    expect(await sendLogout("eyJhbGciOiJub25lIn0.e30.")).toBe(400);
    expect(await sendLogout("")).toBe(400);
    expect(await sendLogout("x".repeat(40_000))).toBe(413);
  });

  test("asks the provider for its keys once for many tokens, which anyone may send", async () => {
    await sendLogout(await logouts.provider.sign({}));
    const asked = logouts.provider.requests.length;
    for (const _ of [1, 2, 3]) expect(await sendLogout("eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.e30.AA")).toBe(400);
    expect(logouts.provider.requests.length).toBe(asked);
  });

  test("keeps nobody from signing in, however many do not come to an end", async () => {
    const sockets = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const port = Number(new URL(logouts.admin.origin).port);
        const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data: () => {} } });
        socket.write("POST /login/oidc/logout HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nl");
        return socket;
      }),
    );
    const begun = await Promise.race([logouts.ask("/login/oidc"), Bun.sleep(3000)]);
    expect(begun?.headers.get("location")).toStartWith(logouts.provider.issuer);
    for (const socket of sockets) socket.end();
  });

  const logouts = shared(() => start());
  const sendLogout = async (token: string): Promise<number> =>
    (
      await fetch(`${logouts.admin.origin}/login/oidc/logout`, {
        method: "POST",
        body: new URLSearchParams({ logout_token: token }),
      })
    ).status;
});

onEachEngine(({ engine }) => {
  describe("who has left", () => {
    const hour = 3_600_000;

    test("is out within the hour, with sessions and keys, by one row of the record", async () => {
      await using one = await start({}, { engine });
      one.provider.person = is({ groups: "ops" }, "robin");
      await one.signIn();
      one.provider.person = is({ groups: "ops" });
      const { cookie } = await one.signIn();
      one.provider.disable("kim");
      await one.admin.repeat();
      expect((await one.admin.send("GET", "/api/keys", { as: { cookie } })).status).toBe(200);
      one.admin.time.now += hour;
      await one.admin.repeat();
      expect((await one.admin.send("GET", "/api/keys", { as: { cookie } })).status).toBe(401);
      expect((await one.users()).map(({ external, isActive }) => [external, isActive])).toEqual([
        ["robin", true],
        ["kim", false],
      ]);
      const rows = await one.admin.store.audit.list({ before: 1e9, limit: 10 });
      expect(rows.map(({ actor, action, before, after }) => [actor, action, before, after])).toEqual([
        ["OpenID Connect", "user.update", '{"is_active":true}', '{"is_active":false}'],
      ]);
      for (const _ of [1, 2, 3]) {
        one.admin.time.now += hour;
        await one.admin.repeat();
      }
      expect((await one.users()).find(({ external }) => external === "robin")?.isActive).toBe(true);
    });

    test("is let in again by a new sign-in, unless an operator has switched the user off", async () => {
      await using one = await start({}, { engine });
      one.provider.person = is({ groups: "ops" });
      await one.signIn();
      one.provider.disable("kim");
      one.admin.time.now += hour;
      await one.admin.repeat();
      one.provider.enable("kim");
      one.admin.time.now = Date.now();
      expect((await one.signIn()).told.get("signed_in")).toBe("1");
      expect((await one.users())[0]?.isActive).toBe(true);
      const switchOff = async () =>
        one.admin.store.subjects.update("user", (await one.users())[0]?.id ?? 0, { isActive: false });
      await switchOff();
      one.admin.time.now += hour;
      await one.admin.repeat();
      one.admin.time.now = Date.now();
      expect((await one.signIn()).told.get("problem")).toBe("inactive");
      // Who had left already, too.
      await one.admin.store.subjects.update("user", (await one.users())[0]?.id ?? 0, { isActive: true });
      await one.signIn();
      one.provider.disable("kim");
      one.admin.time.now += hour;
      await one.admin.repeat();
      await switchOff();
      one.provider.enable("kim");
      one.admin.time.now = Date.now();
      expect((await one.signIn()).told.get("problem")).toBe("inactive");
    });

    test("is not who the provider does not answer about, however long", async () => {
      await using one = await start({}, { engine });
      one.provider.person = is({ groups: "ops" });
      await one.signIn();
      one.provider.isAway = true;
      for (const _ of Array.from({ length: 50 })) {
        one.admin.time.now += hour;
        await one.admin.repeat();
      }
      expect((await one.users())[0]?.isActive).toBe(true);
      // It is asked within a minute when it is back.
      one.provider.isAway = false;
      one.admin.time.now += 60_000;
      one.provider.disable("kim");
      await one.admin.repeat();
      expect((await one.users())[0]?.isActive).toBe(false);
    });

    test("is not whose new refresh token comes with an ID token that has expired, or that nobody can check", async () => {
      await using one = await start({}, { engine });
      one.provider.person = is({ groups: "ops" });
      await one.signIn();
      const before = one.provider.requests.length;
      one.provider.idTokenSeconds = 5;
      for (const _ of [1, 2]) {
        one.admin.time.now += hour;
        await one.admin.repeat();
      }
      expect((await one.users())[0]?.isActive).toBe(true);
      expect(one.provider.requests.slice(before)).not.toContain("/jwks");
    });

    test("is found though the provider has something else against another user, at every check", async () => {
      await using one = await start({}, { engine });
      for (const sub of ["robin", "kim"]) {
        one.provider.person = is({ groups: "ops" }, sub);
        await one.signIn();
        one.admin.time.now += 1;
      }
      one.provider.refuseRefresh = "robin";
      one.provider.disable("kim");
      one.admin.time.now += hour;
      await one.admin.repeat();
      expect((await one.users()).map(({ isActive }) => isActive)).toEqual([true, false]);
    });

    test("is asked about once by several instances", async () => {
      await using one = await start({}, { engine });
      one.provider.person = is({ groups: "ops" });
      await one.signIn();
      one.admin.time.now += hour;
      const before = one.provider.requests.filter((url) => url === "/token").length;
      await Promise.all([one.admin.repeat(), one.admin.repeat(), one.admin.repeat()]);
      expect(one.provider.requests.filter((url) => url === "/token").length - before).toBe(1);
      expect((await one.users())[0]?.isActive).toBe(true);
    });

    test("is, without a refresh token, whose keys were not confirmed for MEMBER_KEYS_DAYS", async () => {
      await using one = await start({}, { engine }, { issueRefreshToken: async () => false });
      one.provider.person = is({ groups: "ops" });
      await one.signIn();
      one.admin.time.now += 29.9 * 24 * hour;
      await one.admin.repeat();
      expect((await one.users())[0]?.isActive).toBe(true);
      one.admin.time.now += 0.2 * 24 * hour;
      await one.admin.repeat();
      expect((await one.users())[0]?.isActive).toBe(true);
      const [user] = await one.users();
      await one.admin.store.keys.create({
        name: "kim: codex",
        key: "of-kim-0123456789",
        createdAt: 1,
        own: { userId: user?.id ?? 0, maxKeys: 1 },
      });
      await one.admin.repeat();
      expect((await one.users())[0]?.isActive).toBe(false);
      one.admin.time.now = Date.now();
      await one.signIn();
      expect((await one.users())[0]?.isActive).toBe(true);
    });
  });
});
