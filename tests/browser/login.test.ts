import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { logOut } from "./support/menus.ts";
import { hasBrowser, lanName, loseSession, password, startConsole } from "./support/console-under-test.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("login", () => {
  const console = shared(() => startConsole());

  const refused = /status of 401/;

  async function logIn(page: Page, as: string, secret: string): Promise<void> {
    await page.getByLabel("Username").fill(as);
    await page.getByLabel("Password").fill(secret);
    await page.getByRole("button", { name: "Log in" }).click();
  }

  test("returns to the requested URL with its query, and outlasts a reload", async () => {
    await using page = await console.visit("/usage?range=7d&metric=requests", { anonymous: true });
    await page.waitForURL("**/login?next=*");
    await logIn(page, "admin", password);
    await page.waitForURL("**/usage?range=7d&metric=requests");
    await page.getByRole("heading", { name: "Usage", level: 1 }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Usage", level: 1 }).waitFor();
  });

  test("is resumed before a change is sent that its user makes meanwhile", async () => {
    await using page = await console.visit("/keys");
    const release = Promise.withResolvers<void>();
    await page.route("**/api/me", async (route) => {
      await release.promise;
      await route.continue();
    });
    await page.reload();
    await page.keyboard.press("n");
    const dialog = page.getByRole("dialog", { name: "New API key" });
    await dialog.getByLabel("Name").fill("early");
    await page.keyboard.press("Enter");
    await dialog.getByRole("button", { name: "Create key", disabled: true }).waitFor();
    release.resolve();
    await page.getByRole("dialog", { name: "Key for “early”" }).waitFor();
  });

  test("reports wrong credentials and selects the password", async () => {
    await using page = await console.visit("/login", { anonymous: true, expectedErrors: refused });
    await logIn(page, "admin", "wrong");
    await page.getByRole("alert").getByText("Wrong username or password.").waitFor();
    expect(await page.evaluate(() => document.activeElement?.getAttribute("name"))).toBe("password");
  });

  test("does not redirect to another site", async () => {
    await using page = await console.visit("/login?next=//elsewhere.example/", { anonymous: true });
    await logIn(page, "admin", password);
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    expect(new URL(page.url()).origin).toBe(console.program.adminUrl);
  });

  test("over plain HTTP on a LAN name warns first, and then reports the dropped cookie", async () => {
    const origin = console.program.adminUrl.replace("127.0.0.1", lanName);
    // There, Chromium also reports that it ignores a header that protects only secure origins.
    const expectedErrors = new RegExp(`${refused.source}|Cross-Origin-Opener-Policy header has been ignored`);
    await using page = await console.visit("/login", { anonymous: true, origin, expectedErrors });
    await page.getByText("This page was loaded over plain HTTP").waitFor();
    await logIn(page, "admin", password);
    await page.getByRole("alert").getByText("the browser did not keep the session cookie").waitFor();
  });

  test("is required again after the session has ended", async () => {
    await using page = await console.visit("/keys?q=a", { expectedErrors: refused });
    await page.getByRole("button", { name: "Menu of admin" }).waitFor();
    // A refresh during the first load would join that request, which still has the cookie.
    await page.getByText(/^Updated/).waitFor();
    await loseSession(page);
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.waitForURL("**/login?next=%2Fkeys%3Fq%3Da");
  });

  test("ends with the logout, also for the old cookie", async () => {
    await using page = await console.visit("/login", { anonymous: true });
    const context = page.context();
    await logIn(page, "admin", password);
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    const [cookie] = await context.cookies();
    await logOut(page);
    await page.getByRole("button", { name: "Log in" }).waitFor();
    const headers = { cookie: `session=${cookie?.value}` };
    expect((await fetch(`${console.program.adminUrl}/api/keys`, { headers })).status).toBe(401);
  });

  test("applies to all tabs, as does the logout", async () => {
    const created = await console.admin.createKey("seen by two tabs");
    await using page = await console.visit("/login", { anonymous: true });
    const context = page.context();
    await logIn(page, "admin", password);
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    const second = await context.newPage();
    await second.goto(`${console.program.adminUrl}/keys`);
    const active = second.getByRole("switch", { name: "seen by two tabs is active" });
    await active.waitFor();
    await logOut(page);
    await second.waitForURL("**/login?next=%2Fkeys");
    await logIn(page, "admin", password);
    // This needs the CSRF token of the new session.
    const changed = second.waitForResponse((response) => response.request().method() === "PATCH");
    await active.click();
    expect((await changed).status()).toBe(200);
    expect(await second.locator(".toast[data-tone=error]").count()).toBe(0);
    await second.goto(`${console.program.adminUrl}/login?next=/gpus`);
    await second.getByRole("heading", { name: "GPUs", level: 1 }).waitFor();
    await console.admin.deleteKey(created.id);
  });

  test("over the rate limit shows the remaining seconds and disables the button", async () => {
    await using page = await console.visit("/login", { anonymous: true, expectedErrors: /status of 4(01|29)/ });
    const waiting = page.getByText(/^Too many attempts. Try again in \d+ seconds?\.$/);
    const wrong = page.getByText("Wrong username or password.");
    for (let attempt = 0; attempt < 11 && !(await waiting.isVisible()); attempt++) {
      const responded = page.waitForResponse("**/api/login");
      await logIn(page, "admin", `wrong ${attempt}`);
      await responded;
      await waiting.or(wrong).waitFor();
    }
    await waiting.waitFor();
    // If each second were announced, a screen reader would read nothing else for a minute.
    expect(await page.getByRole("alert").locator("[aria-live=off]").textContent()).toMatch(/^Try again in \d+ second/);
    expect(await page.getByRole("button", { name: "Log in" }).isDisabled()).toBe(true);
  });
});
