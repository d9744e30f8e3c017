import { describe, expect, test } from "bun:test";
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
  users(): Promise<Awaited<ReturnType<Admin["store"]["subjects"]["list"]>>>;
}

async function start(settings: Partial<SignIn> = {}, overrides: Overrides = {}): Promise<SignedUp> {
  const port = findFreePort();
  const consoleUrl = `http://127.0.0.1:${port}`;
  const provider = await startProvider(consoleUrl);
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = provider.settings;
  const signIn: SignIn = {
    ...{ issuer, clientId, clientSecret, consoleUrl },
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
    users: () => admin.store.subjects.list({ kind: "user" }),
    async [Symbol.asyncDispose]() {
      await admin.stop();
      await provider[Symbol.asyncDispose]();
    },
  };
}

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
});
