import { describe, expect, test } from "bun:test";
import { shared } from "../support/shared.ts";
import { signIn } from "../support/sign-in.ts";
import { violations } from "./support/axe.ts";
import { hasBrowser, loseSession, startConsole } from "./support/console-under-test.ts";
import { chooseFrom } from "./support/menus.ts";
import { seed } from "./support/seed.ts";

/** Where the provider sends a browser back to, in the end. */
const signedIn = "/login?signed_in=1&next=%2F";
const signingKey = "0123456789abcdef";
/** Nobody is there: the sessions are made in the database. */
const provider = {
  ADMIN_URL: "https://gate.example",
  OIDC_ISSUER: "https://id.example",
  OIDC_CLIENT_ID: "tollgate",
  OIDC_CLIENT_SECRET: "0123456789abcdef",
  OIDC_DEFAULT_ROLE: "member",
};

const nobody = { userId: 0, cookie: "", csrf: "" };

describe.skipIf(!hasBrowser)("who has signed in", () => {
  const started = shared(async () => {
    let [kim, lee] = [nobody, nobody];
    const console = await startConsole(undefined, { SECRET_KEY: signingKey, ...provider });
    await seed(console.program.dataDir, async (store) => {
      const team = await store.subjects.create("team", { name: "research", createdAt: 1 });
      if (typeof team === "string") throw new Error(team);
      await store.subjects.update("team", team.id, { limits: { tokens_per_day: 1_000_000 } });
      await store.keys.create({ name: "of others", key: "of-others-0123456789", createdAt: 1 });
      const at = { store, signingKey, clock: Date.now };
      kim = await signIn(at, { name: "Kim", role: "member", teamId: team.id });
      lee = await signIn(at, { name: "Lee", role: "admin" });
    });
    const member = { max_keys: 3, tokens_per_day: 5000, expires_in_days: 30 };
    await console.admin.expectOk("PUT", "/api/key-policy", { defaults: {}, member });
    return { console, kim, lee, [Symbol.asyncDispose]: () => console[Symbol.asyncDispose]() };
  });

  test("comes to a page of their own from wherever, and asks for nothing that is of others", async () => {
    const { console, kim } = started;
    const asked: string[] = [];
    await using visit = await console.visit(signedIn, { anonymous: true, cookie: kim.cookie });
    const { page } = visit;
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    for (const path of [signedIn, "/", "/keys", "/settings/account"]) {
      await page.goto(console.program.adminUrl + path);
      await page.waitForURL("**/me");
      await page.getByRole("heading", { name: "Kim", level: 1 }).waitFor();
    }
    await page.getByText("No keys yet").waitFor();
    await page.getByText("research").waitFor();
    await page.waitForLoadState("networkidle");
    const api = new Set(asked.filter((path) => path.startsWith("/api/")));
    expect([...api].toSorted((a, b) => a.localeCompare(b))).toEqual([
      "/api/login",
      "/api/me",
      "/api/me/keys",
      "/api/me/usage",
      "/api/sessions",
    ]);
  });

  test("signs in again in another tab where a session ends beside what was entered", async () => {
    const { console, lee } = started;
    await using visit = await console.visit(signedIn, { anonymous: true, cookie: lee.cookie, expectedErrors: /401/ });
    const { page, context } = visit;
    await page.goto(`${console.program.adminUrl}/keys?new=1`);
    const form = page.getByRole("dialog", { name: "New API key" });
    await form.getByLabel("Name").fill("kept");
    const [cookie] = await context.cookies();
    await loseSession(visit);
    await page.keyboard.press("Enter");
    const ended = page.getByRole("dialog", { name: "Your session has ended" });
    await ended.getByText("Sign in as Lee in another tab").waitFor();
    const [tab] = await Promise.all([
      context.waitForEvent("page"),
      ended.getByRole("link", { name: "Sign in" }).click(),
    ]);
    await tab.getByRole("link", { name: /Sign in with/ }).waitFor();
    // The provider sends it back.
    await context.addCookies(cookie === undefined ? [] : [cookie]);
    await tab.goto(console.program.adminUrl + signedIn);
    await ended.waitFor({ state: "detached" });
    expect(await form.getByLabel("Name").inputValue()).toBe("kept");
  });

  test("makes a key, whose secret is filled into a client's file, and works; then renames, switches and replaces it", async () => {
    const { console, kim } = started;
    await using visit = await console.visit(signedIn, {
      anonymous: true,
      cookie: kim.cookie,
      expectedErrors: /status of 400/,
    });
    const { page } = visit;
    await page.getByRole("button", { name: "New key" }).click();
    const form = page.getByRole("dialog", { name: "New key" });
    await form.getByLabel("Name").fill("codex");
    await form.getByText("It expires after 30 days.").waitFor();
    await form.getByText("Limits", { exact: true }).click();
    await form.getByLabel("Tokens per day").fill("6000");
    await form.getByRole("button", { name: "Create key" }).click();
    await form.getByText("tokens_per_day must be at most 5000").waitFor();
    await form.getByLabel("Tokens per day").fill("4000");
    await form.getByRole("button", { name: "Create key" }).click();
    const dialog = page.getByRole("dialog", { name: "Key for “Kim: codex”" });
    const secret = (await dialog.locator(".copy-line code").textContent()) ?? "";
    expect(secret).toMatch(/^[0-9a-f]{32}$/);
    await dialog.getByRole("radio", { name: "Continue", exact: true }).check();
    await dialog.getByRole("region", { name: "the lines for Continue" }).getByText(secret).waitFor();
    const use = async (key: string): Promise<number> =>
      (
        await fetch(`${console.program.url}/v1/chat/completions`, {
          method: "POST",
          headers: { "x-api-key": key, "content-type": "application/json" },
          body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }] }),
        })
      ).status;
    expect(await use(secret)).toBe(200);
    await page.keyboard.press("Escape");
    await dialog.getByRole("button", { name: "I have saved it" }).click();
    expect(await page.content()).not.toContain(secret);

    await chooseFrom(page, "Actions of Kim: codex", "Rename");
    await page.getByRole("dialog", { name: "New name" }).getByLabel("Name").fill("aider");
    await page.getByRole("button", { name: "Rename", exact: true }).click();
    const row = page.getByRole("row", { name: "Kim: aider" });
    await row.waitFor();
    await row.getByRole("switch").click();
    await page.waitForResponse((response) => response.request().method() === "GET");
    expect(await use(secret)).toBe(401);
    await row.getByRole("switch").click();
    await chooseFrom(page, "Actions of Kim: aider", "New secret");
    await page.getByRole("button", { name: "Replace the secret" }).click();
    const replaced = page.getByRole("dialog", { name: "Key for “Kim: aider”" });
    const other = (await replaced.locator(".copy-line code").textContent()) ?? "";
    expect([await use(secret), await use(other)]).toEqual([401, 200]);
    await replaced.getByRole("button", { name: "I have saved it" }).click();
    await page.getByText("Requests today").first().waitFor();
  });

  test("has keys within what an administrator sets in Settings", async () => {
    await using visit = await started.console.visit("/settings");
    const { page } = visit;
    const panel = page.getByRole("region", { name: "New keys" });
    await panel.getByText("Keys that people make for themselves have at most:").waitFor();
    await panel.getByRole("button", { name: "Keys that people make" }).click();
    const dialog = page.getByRole("dialog", { name: "Keys that people make" });
    expect(await dialog.getByLabel("Tokens per day").inputValue()).toBe("5,000");
    await dialog.getByLabel("Tokens per day").fill("1M");
    await dialog.getByLabel("Keys of one person").fill("4");
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await panel.getByText("1,000,000 tokens per day").waitFor();
    const { member, defaults } = await started.console.admin.expectOk<Record<string, object>>("GET", "/api/key-policy");
    expect(member).toMatchObject({ max_keys: 4, tokens_per_day: 1_000_000, expires_in_days: 30 });
    expect(defaults).toMatchObject({ tokens_per_day: null, expires_in_days: null });
  });

  test("finds nothing that keeps them out, on a phone either, in both themes", async () => {
    const { console, kim } = started;
    for (const phone of [false, true]) {
      await using visit = await console.visit(signedIn, { anonymous: true, cookie: kim.cookie, phone });
      const { page } = visit;
      await page.getByText("research").waitFor();
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await violations(page)).toEqual([]);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect(wide).toBeLessThanOrEqual(0);
      }
    }
  });

  test("is at the login page once the session has ended", async () => {
    const { console, kim } = started;
    await using visit = await console.visit(signedIn, {
      anonymous: true,
      cookie: kim.cookie,
      expectedErrors: /status of 401/,
    });
    const { page } = visit;
    await page.getByRole("button", { name: "Log out" }).click();
    await page.waitForURL("**/login");
    expect((await fetch(`${console.program.adminUrl}/api/me`, { headers: { cookie: kim.cookie } })).status).toBe(401);
  });
});
