import type { AxeResults } from "axe-core";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { type ConsoleUnderTest, hasBrowser } from "./support/console-under-test.ts";
import { startSeededConsole, waitUntilLoaded } from "./support/seeded-console.ts";

const axe = readFileSync(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir), "utf8");
const paths = ["/login", "/me", "/", "/keys", "/usage", "/gpus", "/nowhere"];

describe.skipIf(!hasBrowser)("accessibility", () => {
  let console: ConsoleUnderTest;
  beforeAll(async () => {
    console = await startSeededConsole();
  });
  afterAll(() => console[Symbol.asyncDispose]());

  async function violations(page: Page): Promise<string[]> {
    await page.evaluate(axe);
    const results = await page.evaluate((): Promise<AxeResults> => Reflect.get(globalThis, "axe").run());
    return results.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`));
  }

  describe.each(["light", "dark"] as const)("in %s mode", (scheme) => {
    test.each(paths)("%s has no axe violations", async (path) => {
      await using visit = await console.visit(path, { scheme, anonymous: path === "/login" || path === "/me" });
      await waitUntilLoaded(visit.page);
      expect(await violations(visit.page)).toEqual([]);
    });

    test("the dialogs have no axe violations", async () => {
      await using visit = await console.visit("/keys?new=1", { scheme });
      const { page } = visit;
      await page.getByRole("dialog").getByLabel("Name").fill("audited");
      expect(await violations(page)).toEqual([]);
      await page.getByRole("button", { name: "Create key" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Copy the key" }).click();
      await page.getByText("Copied").waitFor();
      expect(await violations(page)).toEqual([]);
      await page.getByRole("button", { name: "Done" }).click();
      await page.getByRole("button", { name: "Delete audited" }).last().click();
      expect(await violations(page)).toEqual([]);
      await page.getByRole("button", { name: "Delete key" }).click();
      await page.getByText("“audited” was deleted").waitFor();
      expect(await violations(page)).toEqual([]);
    });
  });

  test("shortcuts open the pages, and `?` lists them", async () => {
    await using visit = await console.visit("/");
    const { page } = visit;
    for (const [second, title] of [
      ["k", "API keys"],
      ["u", "Usage"],
      ["g", "GPUs"],
      ["o", "Overview"],
    ] as const) {
      await page.keyboard.press("g");
      await page.keyboard.press(second);
      await page.getByRole("heading", { name: title, level: 1 }).waitFor();
    }
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    const description = page.getByRole("link", { name: "description of the API" });
    expect(await description.getAttribute("href")).toBe("/api/openapi.json");
    // While a dialog is open, the page ignores shortcuts.
    await page.keyboard.press("n");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("n");
    await page.getByRole("dialog", { name: "New API key" }).waitFor();
  });

  test("letters typed into a field are not shortcuts", async () => {
    await using visit = await console.visit("/keys");
    const { page } = visit;
    await page.keyboard.press("/");
    await page.keyboard.type("gun?/");
    expect(await page.getByRole("searchbox").inputValue()).toBe("gun?/");
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  test("the skip link moves the focus to the main content and keeps the URL", async () => {
    await using visit = await console.visit("/usage?range=7d");
    const { page } = visit;
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("main");
    expect(page.url()).toEndWith("/usage?range=7d");
  });

  test("screen readers do not announce texts that change every second", async () => {
    await using visit = await console.visit("/", { fakeClock: true, expectedErrors: /ERR_FAILED/ });
    const { page } = visit;
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
