import { describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { logOut } from "./support/menus.ts";
import { hasBrowser, startConsole } from "./support/console-under-test.ts";
import { waitUntilDrawn } from "./support/seeded-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("the secret of a new key", () => {
  const console = shared(() => startConsole());

  async function createKey(page: Page, name: string): Promise<Locator> {
    await page.keyboard.press("n");
    await page.getByRole("dialog").getByLabel("Name").fill(name);
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: `Key for “${name}”` });
    await dialog.waitFor();
    return dialog;
  }
  /** Reloads, and returns whether the browser asked; if it did, the page stays. */
  async function reloadAsks(page: Page): Promise<boolean> {
    const asked = page.waitForEvent("dialog").then(async (dialog) => {
      expect(dialog.type()).toBe("beforeunload");
      await dialog.dismiss();
      return true;
    });
    const loaded = page.waitForEvent("load").then(() => false);
    await page.evaluate(() => void setTimeout(() => location.reload()));
    const first = await Promise.race([asked, loaded]);
    for (const other of [asked, loaded]) other.catch(() => {});
    return first;
  }

  test("outlives Back, until it was saved", async () => {
    await using visit = await console.visit("/");
    const { page } = visit;
    await page.getByRole("link", { name: "API keys" }).first().click();
    await page.waitForURL("**/keys");
    const dialog = await createKey(page, "back");
    await page.goBack();
    await page.getByRole("heading", { name: "Overview", includeHidden: true }).waitFor({ state: "attached" });
    expect(await dialog.isVisible()).toBe(true);
    await dialog.getByRole("button", { name: "I have saved it" }).click();
    await dialog.waitFor({ state: "detached" });
  });

  test("outlives a logout in another tab", async () => {
    await using visit = await console.visit("/keys", { expectedErrors: /status of 401/ });
    const { page, context } = visit;
    let hasEnded = false;
    await page.route("**/api/overview", async (route) => {
      if (hasEnded) return route.fulfill({ status: 401, json: { error: "Log in" } });
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), separate_ports: true } });
    });
    const dialog = await createKey(page, "logged out");
    const secret = await dialog.getByRole("code").first().textContent();
    await dialog.getByText("Use it").click();
    const lines = dialog.getByRole("region", { name: "the lines for curl" });
    await lines.getByText("http://ADDRESS/v1").waitFor();
    const other = await context.newPage();
    await other.addInitScript(() => localStorage.setItem("tollgate.session", "yes"));
    await other.route("**/api/logout", (route) => route.fulfill({ json: { ok: true } }));
    await other.goto(`${console.program.adminUrl}/keys`);
    hasEnded = true;
    const refused = page.waitForResponse((response) => response.url().endsWith("/api/overview") && !response.ok());
    await logOut(other);
    await page.waitForURL("**/login*");
    await refused;
    await waitUntilDrawn(page);
    expect(await lines.textContent()).toContain("http://ADDRESS/v1");
    expect(await dialog.getByRole("code").first().textContent()).toBe(secret);
    await dialog.getByRole("button", { name: "Copy the key" }).click();
    await dialog.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "Log in" }).waitFor();
  });

  test("is not lost by a reload without a question, until it was copied", async () => {
    await using visit = await console.visit("/keys");
    const { page } = visit;
    const dialog = await createKey(page, "reloaded");
    expect(await reloadAsks(page)).toBe(true);
    expect(await dialog.isVisible()).toBe(true);
    await dialog.getByRole("button", { name: "Copy the key" }).click();
    await dialog.getByText("Copied").waitFor();
    expect(await reloadAsks(page)).toBe(false);
    await page.getByRole("link", { name: "reloaded" }).waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  test("is not saved by a copy of lines without it", async () => {
    await using visit = await console.visit("/keys");
    const { page } = visit;
    const dialog = await createKey(page, "quick start");
    await dialog.getByText("Use it").click();
    const copyLines = async (client: string): Promise<void> => {
      await dialog.getByText(client, { exact: true }).click();
      const block = dialog.locator(".code-block").filter({ has: page.getByRole("region", { name: client }) });
      await block.getByRole("button", { name: /^Copy/ }).click();
      await block.getByText("Copied").waitFor();
    };
    await copyLines("Codex");
    expect(await reloadAsks(page)).toBe(true);
    expect(await dialog.getByRole("button", { name: "I have saved it" }).isVisible()).toBe(true);
    await copyLines("Claude Code");
    await dialog.getByRole("button", { name: "Done" }).click();
    await dialog.waitFor({ state: "detached" });
  });

  test("leaves no trace in the address, and Back closes a form without a secret", async () => {
    await using visit = await console.visit("/");
    const { page } = visit;
    await page.keyboard.press("n");
    await page.getByRole("dialog", { name: "New API key" }).waitFor();
    await page.waitForURL((url) => url.pathname === "/keys" && url.search === "");
    await page.goBack();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  });
});
