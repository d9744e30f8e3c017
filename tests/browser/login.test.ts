import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { type ConsoleUnderTest, hasBrowser, lanName, password, startConsole } from "./support/console-under-test.ts";

// Bun (1.4.5) forgets the preloaded default after the first file.
// Remove when a preloaded default holds for all files.
setDefaultTimeout(30_000);

describe.skipIf(!hasBrowser)("login", () => {
  let console: ConsoleUnderTest;
  beforeAll(async () => {
    console = await startConsole();
  });
  afterAll(() => console[Symbol.asyncDispose]());

  const refused = /status of 401/;

  async function logIn(page: Page, as: string, secret: string): Promise<void> {
    await page.getByLabel("User name").fill(as);
    await page.getByLabel("Password").fill(secret);
    await page.getByRole("button", { name: "Log in" }).click();
  }

  test("leads back to the address that was wanted, with all that it held", async () => {
    await using visit = await console.visit("/usage?range=7d&metric=requests", { anonymous: true });
    const { page } = visit;
    await page.waitForURL("**/login?next=*");
    await logIn(page, "admin", password);
    await page.waitForURL("**/usage?range=7d&metric=requests");
    await page.getByRole("heading", { name: "Usage", level: 1 }).waitFor();
  });

  test("survives a reload", async () => {
    await using visit = await console.visit("/login", { anonymous: true });
    const { page } = visit;
    await logIn(page, "admin", password);
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  });

  test("says that user name or password is wrong, and selects the password for another try", async () => {
    await using visit = await console.visit("/login", { anonymous: true, provokes: refused });
    const { page } = visit;
    await logIn(page, "admin", "wrong");
    await page.getByRole("alert").getByText("The user name or the password is wrong.").waitFor();
    expect(await page.evaluate(() => document.activeElement?.getAttribute("name"))).toBe("password");
  });

  test("does not follow a link to elsewhere", async () => {
    await using visit = await console.visit("/login?next=//elsewhere.example/", { anonymous: true });
    await logIn(visit.page, "admin", password);
    await visit.page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    expect(new URL(visit.page.url()).origin).toBe(console.program.adminUrl);
  });

  test("over plain HTTP under a LAN name says at once that it cannot last, and why it did not", async () => {
    const origin = console.program.adminUrl.replace("127.0.0.1", lanName);
    await using visit = await console.visit("/login", { anonymous: true, origin, provokes: refused });
    const { page } = visit;
    await page.getByText("This page came over plain HTTP").waitFor();
    await logIn(page, "admin", password);
    await page.getByRole("alert").getByText("the browser did not keep the session cookie").waitFor();
  });

  test("is asked for again where the session ended meanwhile", async () => {
    await using visit = await console.visit("/keys?q=a", { provokes: refused });
    const { page, context } = visit;
    await page.getByRole("heading", { name: "API keys", level: 1 }).waitFor();
    await context.clearCookies();
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.waitForURL("**/login?next=%2Fkeys%3Fq%3Da");
  });

  test("is over after logging out, for the old cookie too", async () => {
    await using visit = await console.visit("/login", { anonymous: true });
    const { page, context } = visit;
    await logIn(page, "admin", password);
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    const [cookie] = await context.cookies();
    await page.getByRole("button", { name: "Log out admin" }).click();
    await page.getByRole("button", { name: "Log in" }).waitFor();
    const headers = { cookie: `session=${cookie?.value}` };
    expect((await fetch(`${console.program.adminUrl}/api/keys`, { headers })).status).toBe(401);
  });

  test("in one tab is one in all of them, and so is logging out", async () => {
    const created = await console.admin.createKey("seen by two tabs");
    await using visit = await console.visit("/login", { anonymous: true });
    const { page, context } = visit;
    await logIn(page, "admin", password);
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    const second = await context.newPage();
    await second.goto(`${console.program.adminUrl}/keys`);
    const active = second.getByRole("switch", { name: "seen by two tabs is active" });
    await active.waitFor();
    await page.getByRole("button", { name: "Log out admin" }).click();
    await second.waitForURL("**/login?next=%2Fkeys");
    await logIn(page, "admin", password);
    // Not with the CSRF token of the session that is over.
    const changed = second.waitForResponse((answer) => answer.request().method() === "PATCH");
    await active.click();
    expect((await changed).status()).toBe(200);
    expect(await second.getByRole("button", { name: "Dismiss" }).count()).toBe(0);
    await second.goto(`${console.program.adminUrl}/login?next=/gpus`);
    await second.getByRole("heading", { name: "GPUs", level: 1 }).waitFor();
    await console.admin.deleteKey(created.id);
  });

  test("that is over already lets log out without a complaint", async () => {
    await using visit = await console.visit("/keys", { provokes: refused });
    const { page, context } = visit;
    await page.getByRole("button", { name: "Log out admin" }).waitFor();
    await context.clearCookies();
    await page.getByRole("button", { name: "Log out admin" }).click();
    await page.getByRole("button", { name: "Log in" }).waitFor();
    expect(await page.getByText("Still logged in").count()).toBe(0);
  });

  test("tells the seconds that are left where the limit is hit, and waits", async () => {
    await using visit = await console.visit("/login", { anonymous: true, provokes: /status of 4(01|29)/ });
    const { page } = visit;
    const waiting = page.getByText(/^Too many attempts. Try again in \d+ seconds?\.$/);
    const wrong = page.getByText("The user name or the password is wrong.");
    for (let attempt = 0; attempt < 11 && !(await waiting.isVisible()); attempt++) {
      const answered = page.waitForResponse("**/api/login");
      await logIn(page, "admin", `wrong ${attempt}`);
      await answered;
      await waiting.or(wrong).waitFor();
    }
    await waiting.waitFor();
    // A screen reader that is told each second says nothing else for a minute.
    expect(await page.getByRole("alert").locator("[aria-live=off]").textContent()).toMatch(/^Try again in \d+ second/);
    expect(await page.getByRole("button", { name: "Log in" }).isDisabled()).toBe(true);
  });
});
