import { describe, expect, test } from "bun:test";
import { violations } from "./support/axe.ts";
import { hasBrowser, startConsole } from "./support/console-under-test.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("the handbook", () => {
  const console = shared(() => startConsole());

  test("leads from Help over the contents to a chapter, whose links stay in the console", async () => {
    await using page = await console.visit("/help");
    await page.getByRole("navigation", { name: "Help" }).getByRole("link", { name: "Handbook" }).click();
    await page.getByRole("region", { name: "Contents" }).getByRole("link", { name: "Settings" }).click();
    await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("heading", { name: "All settings" }).hover();
    await page.getByRole("heading", { name: "All settings" }).getByRole("link").click();
    await page.waitForURL("**/help/handbook/settings#all-settings");
  });

  test.each([false, true])("opens at a heading, on a phone: %p", async (phone) => {
    await using page = await console.visit("/help/handbook/settings#all-settings", { phone });
    await page.getByRole("heading", { name: "All settings" }).waitFor();
    await page.waitForFunction(() => scrollY > 100);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBeTrue();
  });

  test("is searched as one types, and the search is in the address", async () => {
    await using page = await console.visit("/help/handbook/settings", { scheme: "dark" });
    await page.getByRole("searchbox").focus();
    await page.keyboard.type("private certificate");
    const found = page.getByRole("region", { name: "Found" });
    await found.getByRole("link", { name: "A backend with a private certificate" }).waitFor();
    await page.waitForURL("**?q=private+certificate");
    expect(await violations(page)).toEqual([]);
    await found.getByRole("link", { name: "A backend with a private certificate" }).click();
    await page.getByRole("article").getByRole("heading", { name: "A backend with a private certificate" }).waitFor();
    await page.goto(`${console.program.adminUrl}/help/handbook?q=xyzzy`);
    await page.getByText("Nothing found").waitFor();
    await page.goto(`${console.program.adminUrl}/help/handbook/nothing`);
    await page.getByText("no such chapter").waitFor();
  });
});
