import { describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { openAccountMenu } from "./support/menus.ts";
import { hasBrowser } from "./support/console-under-test.ts";
import { waitUntilLoaded } from "./support/seeded-console.ts";
import { csvOf, startUsageConsole, sumOfColumn, waitForBars } from "./support/usage-console.ts";
import { shared } from "../support/shared.ts";

const dayMs = 86_400_000;
/** A day in Seoul, counted back from now. */
const dayAgo = (days: number): string => new Date(Date.now() + 9 * 3_600_000 - days * dayMs).toISOString().slice(0, 10);

describe.skipIf(!hasBrowser)("the range of usage", () => {
  const console = shared(startUsageConsole);

  const history = (page: Page): Locator => page.getByRole("region", { name: "Output tokens" });
  const openDialog = (page: Page): Promise<void> => page.locator("[aria-haspopup=dialog]").click();

  test.each([
    ["Yesterday", "yesterday"],
    ["90 d", "90d"],
  ])("%s is part of the URL and survives a reload", async (label, range) => {
    await using page = await console.visit("/usage");
    await waitForBars(page);
    await openDialog(page);
    await page.getByRole("dialog").getByText("Days in Seoul time").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: label }).click();
    await page.waitForURL(`**/usage?range=${range}`);
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.reload();
    await page.getByRole("button", { name: label, pressed: true }).waitFor();
    await waitForBars(page);
    expect(await history(page).locator(".hint").textContent()).toMatch(/^\d+ \w+, 00:00 – /);
    await page.getByRole("radio", { name: "Last month" }).check();
    await page.waitForURL("**/usage?range=last-month");
    expect(await page.getByRole("button", { pressed: true }).count()).toBe(0);
  });

  test("any days of the last year can be chosen with the keyboard", async () => {
    await using page = await console.visit("/usage");
    await waitForBars(page);
    await page.locator("[aria-haspopup=dialog]").focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Choose days" });
    await dialog.getByLabel("First day").fill(dayAgo(200));
    await dialog.getByLabel("Last day").fill(dayAgo(201));
    await dialog.getByRole("alert").getByText("The first day is after the last.").waitFor();
    expect(await dialog.getByRole("button", { name: "Show" }).isDisabled()).toBe(true);
    await dialog.getByLabel("First day").fill(dayAgo(500));
    await dialog
      .getByRole("alert")
      .getByText(/can be shown\.$/)
      .waitFor();
    await dialog.getByLabel("First day").fill(dayAgo(210));
    await dialog.getByLabel("Last day").fill(dayAgo(201));
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/usage?from=${dayAgo(210)}T00%3A00&to=${dayAgo(200)}T00%3A00`);
    await page.getByRole("button", { name: `${dayAgo(210)} – ${dayAgo(201)}` }).waitFor();
    await page
      .getByRole("region", { name: "Usage and cost" })
      .locator("table:not(.stale)")
      .getByText("12 rows")
      .waitFor();
    // Each of the twelve keys has one request a day.
    expect(sumOfColumn(await csvOf(page, "Usage and cost"), 2)).toBe(120);
  });

  test("a day is Seoul's in any time zone", async () => {
    await using page = await console.visit(`/usage?from=${dayAgo(9)}T00:00&to=${dayAgo(8)}T00:00`, {
      timeZone: "America/Los_Angeles",
    });
    await openAccountMenu(page);
    await page.getByLabel("Time zone").selectOption("local");
    await page.getByRole("button", { name: dayAgo(9), exact: true }).waitFor();
  });

  test.each([1280, 1920, 2560])("a window %i pixels wide is used", async (width) => {
    await using page = await console.visit("/");
    await page.setViewportSize({ width, height: 1080 });
    await waitUntilLoaded(page);
    const used = await page.evaluate(() => (document.querySelector("main")?.clientWidth ?? 0) / innerWidth);
    expect(used).toBeGreaterThan(width === 1280 ? 0.8 : 0.85);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
  });
});
