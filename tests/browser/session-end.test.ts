import { describe, expect, test } from "bun:test";
import { logOut } from "./support/menus.ts";
import { violations } from "./support/axe.ts";
import { hasBrowser, loseSession, password, startConsole } from "./support/console-under-test.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("login after a session has ended", () => {
  const console = shared(() => startConsole());

  const refused = /status of 401/;

  test("in place goes on with a dialog whose session has ended, and keeps what was entered", async () => {
    await using page = await console.visit("/keys?new=1", { expectedErrors: refused });
    const form = page.getByRole("dialog", { name: "New API key" });
    await form.getByLabel("Name").fill("kept");
    await loseSession(page);
    await page.keyboard.press("Enter");
    const ended = page.getByRole("dialog", { name: "Your session has ended" });
    await ended.getByLabel("Password").fill("wrong");
    await page.keyboard.press("Enter");
    await ended.getByText("Wrong username or password.").waitFor();
    expect(await violations(page)).toEqual([]);
    await ended.getByLabel("Password").fill(password);
    await page.keyboard.press("Enter");
    await ended.waitFor({ state: "detached" });
    expect(new URL(page.url()).pathname).toBe("/keys");
    expect(await form.getByLabel("Name").inputValue()).toBe("kept");
    await form.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("dialog", { name: "Key for “kept”" }).waitFor();
  });

  test("in place keeps what is entered in a form of the page, and a logout does not ask for it", async () => {
    await using page = await console.visit("/settings/prices", { expectedErrors: refused });
    await page.getByRole("button", { name: "Add a model price" }).click();
    await page.getByLabel("Currency").fill("EUR");
    await page.getByLabel("Model", { exact: true }).fill("kept-*");
    for (const label of ["Input", "Output"]) await page.getByLabel(label, { exact: true }).fill("1");
    await loseSession(page);
    await page.getByRole("button", { name: "Save prices" }).click();
    const ended = page.getByRole("dialog", { name: "Your session has ended" });
    await ended.getByLabel("Password").fill(password);
    await page.keyboard.press("Enter");
    await ended.waitFor({ state: "detached" });
    expect(await page.getByLabel("Model", { exact: true }).inputValue()).toBe("kept-*");
    const saved = page.waitForResponse("**/api/prices");
    await page.getByRole("button", { name: "Save prices" }).click();
    expect((await saved).status()).toBe(200);
    await page.getByLabel("Model", { exact: true }).fill("left-*");
    await logOut(page);
    await page.waitForURL("**/login?next=*");
  });

  test("can be left for the login page", async () => {
    await using page = await console.visit("/keys?new=1", { expectedErrors: refused });
    await page.getByRole("dialog", { name: "New API key" }).getByLabel("Name").fill("left");
    await loseSession(page);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Leave" }).click();
    await page.waitForURL("**/login?next=*");
  });

  test("is on the login page if the session had ended before the console knew whose it was", async () => {
    await using page = await console.visit("/keys", { expectedErrors: refused });
    await loseSession(page);
    await page.goto(`${console.program.adminUrl}/keys?new=1`);
    await page.waitForURL("**/login?next=%2Fkeys*");
    await page.getByLabel("Username").waitFor();
  });
});
