import { describe, expect, test } from "bun:test";
import { chooseFrom } from "./support/menus.ts";
import { violations, violationsInBothSchemes } from "./support/axe.ts";
import { hasBrowser, startConsole } from "./support/console-under-test.ts";
import { startSeededConsole, waitUntilLoaded } from "./support/seeded-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("accessibility of a new installation", () => {
  const console = shared(() => startConsole());

  test.each(["/", "/keys", "/usage", "/gpus"])("%s has no axe violations", async (path) => {
    await using page = await console.visit(path);
    await waitUntilLoaded(page);
    expect(await violations(page)).toEqual([]);
  });
});

describe.skipIf(!hasBrowser)("accessibility", () => {
  const console = shared(() => startSeededConsole());

  // Each page as such: layout.test.ts, which opens them all.
  test("the dialogs have no axe violations, in light and in dark mode", async () => {
    await using page = await console.visit("/keys?new=1");
    await page.getByRole("dialog").getByLabel("Name").fill("audited");
    expect(await violationsInBothSchemes(page)).toEqual([]);
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Copy the key" }).click();
    await page.getByText("Copied").waitFor();
    expect(await violationsInBothSchemes(page)).toEqual([]);
    await page.getByRole("button", { name: "Done" }).click();
    await chooseFrom(page, "Actions of audited", "Delete");
    expect(await violationsInBothSchemes(page)).toEqual([]);
    await page.getByRole("button", { name: "Delete key" }).click();
    await page.getByText("“audited” was deleted").waitFor();
    expect(await violationsInBothSchemes(page)).toEqual([]);
  });

  test("the page shown while the server does not respond has no axe violations", async () => {
    await using page = await console.visit("/", { expectedErrors: /ERR_FAILED/ });
    await page.route("**/api/**", (route) => route.abort());
    await page.reload();
    await page.getByText("The server does not respond.").waitFor();
    expect(await violations(page)).toEqual([]);
  });

  test("shortcuts open the pages, and `?` lists them", async () => {
    await using page = await console.visit("/");
    for (const [second, title] of [
      ["r", "Requests"],
      ["k", "API keys"],
      ["u", "Usage"],
      ["b", "Backends"],
      ["s", "Settings"],
      ["h", "Quick start"],
      ["o", "Overview"],
    ] as const) {
      await page.keyboard.press("g");
      await page.keyboard.press(second);
      await page.getByRole("heading", { name: title, level: 1 }).waitFor();
    }
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Find" }).getByText("Keyboard shortcuts").waitFor();
    const description = page.getByRole("link", { name: "description of the API" });
    expect(await description.getAttribute("href")).toBe("/api/openapi.json");
    // While a dialog is open, the page ignores shortcuts.
    await page.keyboard.press("n");
    expect(await page.getByRole("searchbox").inputValue()).toBe("n");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("n");
    await page.getByRole("dialog", { name: "New API key" }).waitFor();
  });

  test("letters typed into a field are not shortcuts", async () => {
    await using page = await console.visit("/keys");
    await page.getByRole("searchbox").focus();
    await page.keyboard.type("gun?/");
    expect(await page.getByRole("searchbox").inputValue()).toBe("gun?/");
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  test("the skip link moves the focus to the main content and keeps the URL", async () => {
    await using page = await console.visit("/usage?range=7d");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("main");
    expect(page.url()).toEndWith("/usage?range=7d");
  });

  test("screen readers do not announce texts that change every second", async () => {
    await using page = await console.visit("/", { fakeClock: true, expectedErrors: /ERR_FAILED/ });
    await page.getByText(/^Updated/).waitFor();
    await page.route("**/api/overview", (route) => route.abort());
    const announced = (): Promise<string[]> =>
      page.evaluate(() =>
        [...document.querySelectorAll("[role=status], [role=alert]")].map((region) => {
          const copy = region.cloneNode(true) as Element;
          for (const silent of copy.querySelectorAll("[aria-live=off]")) silent.remove();
          return copy.textContent ?? "";
        }),
      );
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByRole("alert").getByText("The server does not respond.").waitFor();
    expect((await announced()).filter((text) => /just now|ago/.test(text))).toEqual([]);
  });
});
