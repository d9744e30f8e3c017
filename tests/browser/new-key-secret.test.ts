import { describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { logOut } from "./support/menus.ts";
import { violations } from "./support/axe.ts";
import { hasBrowser, startConsole } from "./support/console-under-test.ts";
import { startBackends } from "../support/several-backends.ts";
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
    await using page = await console.visit("/");
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
    await using page = await console.visit("/keys", { expectedErrors: /status of 401/ });
    const context = page.context();
    let hasEnded = false;
    await page.route("**/api/overview", async (route) => {
      if (hasEnded) return route.fulfill({ status: 401, json: { error: "Log in" } });
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), separate_ports: true } });
    });
    const dialog = await createKey(page, "logged out");
    const secret = await dialog.getByRole("code").first().textContent();
    const lines = dialog.getByRole("region", { name: "all that its user needs" });
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
    await using page = await console.visit("/keys");
    const dialog = await createKey(page, "reloaded");
    expect(await reloadAsks(page)).toBe(true);
    expect(await dialog.isVisible()).toBe(true);
    await dialog.getByRole("button", { name: "Copy the key" }).click();
    await dialog.getByText("Copied").waitFor();
    expect(await reloadAsks(page)).toBe(false);
    await page.getByRole("link", { name: "reloaded" }).waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  test("is handed over by one copy, with the model and its context, the clients’ lines and the holder’s page", async () => {
    using backends = startBackends({ one: "" });
    const file = await Bun.file(backends.file).text();
    await Bun.write(backends.file, file.replace("m: {", "m: { context_tokens: 131072, "));
    await using own = await startConsole(undefined, { MODELS_FILE: backends.file });
    await own.admin.createKey("older");
    await using page = await own.visit("/keys?sort=name");
    const dialog = await createKey(page, "zoe");
    const secret = (await dialog.getByRole("code").first().textContent()) ?? "";
    await dialog.getByRole("button", { name: "Copy all that its user needs" }).click();
    await dialog.getByText("Copied").waitFor();
    const text = await page.evaluate(() => navigator.clipboard.readText());
    for (const part of [
      `API key: ${secret}`,
      "Model: m",
      "Context: 131072 tokens",
      `${own.program.adminUrl}/me`,
      '"CLAUDE_CODE_MAX_CONTEXT_TOKENS": "131072"',
      "model_context_window = 131072",
      "from openai import OpenAI",
    ]) {
      expect(text).toContain(part);
    }
    expect(text).not.toContain("202752");
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Done" }).click();
    // Its row is first until the page is left, whatever the table is sorted by.
    const rows = page.getByRole("rowheader");
    await rows.filter({ hasText: "zoe" }).waitFor();
    expect(await rows.allTextContents()).toEqual(["zoe", "older"]);
    await page.getByRole("link", { name: "Usage" }).click();
    await page.goBack();
    await rows.filter({ hasText: "older" }).waitFor();
    expect(await rows.allTextContents()).toEqual(["older", "zoe"]);
  });

  test("models are picked from those that are served, and one that nobody serves is named", async () => {
    await using own = await startConsole(undefined, { PROXY_ALIAS_MODEL: "served" });
    await using page = await own.visit("/keys?new=1");
    await page.getByText("Limits and details").click();
    const field = page.getByLabel("Allowed models");
    await page.getByRole("button", { name: "served", exact: true }).click();
    expect(await field.inputValue()).toBe("served");
    await field.fill("served, serv*, typo");
    await page.getByText("No backend serves typo now.").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByLabel("Name", { exact: true }).fill("picky");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("dialog", { name: "Key for “picky”" }).waitFor();
    const [key] = await own.admin.listKeys();
    expect(key).toMatchObject({ allowed_models: ["served", "serv*", "typo"] });
  });

  test("leaves no trace in the address, and Back closes a form without a secret", async () => {
    await using page = await console.visit("/");
    await page.keyboard.press("n");
    await page.getByRole("dialog", { name: "New API key" }).waitFor();
    await page.waitForURL((url) => url.pathname === "/keys" && url.search === "");
    await page.goBack();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  });
});
