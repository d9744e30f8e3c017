import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { hasBrowser } from "./support/console-under-test.ts";
import { shared } from "../support/shared.ts";
import { chartOf, startUsageConsole, waitForBars } from "./support/usage-console.ts";

describe.skipIf(!hasBrowser)("usage chart", () => {
  const console = shared(startUsageConsole);

  /** Drags over a part of the chart, given in tenths of its plot. */
  async function drag(page: Page, from: number, to: number): Promise<void> {
    await chartOf(page).scrollIntoViewIfNeeded();
    const box = await chartOf(page).boundingBox();
    if (box === null) throw new Error("The chart is not visible");
    const xAt = (tenths: number): number => box.x + 52 + ((box.width - 60) * tenths) / 10;
    await page.mouse.move(xAt(from), box.y + 100);
    await page.mouse.down();
    await page.mouse.move(xAt(to), box.y + 110, { steps: 5 });
    await page.mouse.up();
  }

  test("dragging zooms and loads finer buckets; Reset and Back leave the zoom", async () => {
    await using page = await console.visit("/usage?range=7d");
    await waitForBars(page);
    const finer = page.waitForRequest(/usage\/chart\?.*bucket_minutes=(1|2|3|5)(&|$)/);
    await drag(page, 9.4, 9.95);
    await page.waitForURL(/from=.*&to=/);
    await finer;
    await page.getByText(/· (1|2|3|5)-minute bars/).waitFor();
    await page.getByRole("button", { name: "Reset zoom" }).click();
    await page.waitForURL("**/usage?range=7d");
    await page.goBack();
    await page.waitForURL(/from=.*&to=/);
    await page.getByRole("button", { name: "Reset zoom" }).waitFor();
  });

  test("the keyboard moves along the chart, selects, zooms and resets", async () => {
    await using page = await console.visit("/usage?range=6h");
    await waitForBars(page);
    await chartOf(page).focus();
    await page.keyboard.press("End");
    const tooltip = chartOf(page).locator(".tooltip");
    await tooltip.getByText("No data").waitFor();
    for (let press = 0; press < 4; press++) await page.keyboard.press("PageUp");
    await tooltip.getByText("alpha").waitFor();
    for (let press = 0; press < 3; press++) await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Enter");
    await page.waitForURL(/from=.*&to=/);
    await page.keyboard.press("Escape");
    await page.waitForURL((url) => !url.searchParams.has("from"));
  });

  test("the tooltip lists the top eight keys, the sum of the rest, which is one grey bar, and the total", async () => {
    await using page = await console.visit("/usage?range=6h");
    await waitForBars(page);
    expect(await chartOf(page).locator("path.fill").count()).toBe(9);
    expect(await chartOf(page).locator("path.fill.series-0").count()).toBe(1);
    expect(await chartOf(page).locator(".tooltip").isVisible()).toBe(false);
    const box = await chartOf(page).boundingBox();
    if (box === null) throw new Error("The chart is not visible");
    await page.mouse.move(box.x + 52 + (box.width - 60) * 0.5, box.y + 120);
    const lines = chartOf(page).locator(".tooltip li");
    await lines.first().waitFor();
    const texts = await lines.locator(".name").allTextContents();
    expect(texts.slice(0, 3)).toEqual(["alpha", "beta", "gamma"]);
    expect(texts.slice(8)).toEqual(["Other (4 keys)", "Total"]);
    const values = (await lines.locator(".value").allTextContents()).map((text) => Number(text.replaceAll(",", "")));
    expect(values.slice(0, 8)).toEqual(values.slice(0, 8).toSorted((a, b) => b - a));
    expect(values.slice(0, 9).reduce((total, value) => total + value, 0)).toBe(values[9] ?? Number.NaN);
  });

  test("buckets without usage leave a gap", async () => {
    await using page = await console.visit("/usage?range=1h");
    await page.getByText("No output tokens in this period").waitFor();
    await page.getByRole("radio", { name: "24 h" }).first().check();
    await waitForBars(page);
    const path = (await chartOf(page).locator("path.fill").first().getAttribute("d")) ?? "";
    expect(path.match(/M/g)?.length).toBeLessThan(150);
  });
});
