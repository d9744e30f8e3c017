import { describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { hasBrowser } from "./support/console-under-test.ts";
import { startSeededConsole, waitUntilLoaded } from "./support/seeded-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser).each(["light", "dark"] as const)("in forced colours, %s", (scheme) => {
  const console = shared(() => startSeededConsole());

  async function forceColours(page: Page): Promise<void> {
    await page.emulateMedia({ forcedColors: "active" });
    await waitUntilLoaded(page);
  }

  const background = (element: Locator, pseudo?: string): Promise<string> =>
    element.evaluate((found, selector) => getComputedStyle(found, selector).backgroundColor, pseudo);

  test("the current page and the chosen segment differ from the others", async () => {
    await using page = await console.visit("/usage", { scheme });
    await forceColours(page);
    const links = page.getByRole("navigation").getByRole("link");
    expect(await background(links.filter({ hasText: "Usage" }))).not.toBe(
      await background(links.filter({ hasText: "Overview" })),
    );
    const segments = page.getByRole("group", { name: "Range" }).locator("label");
    expect(await background(segments.filter({ hasText: "24 h" }))).not.toBe(
      await background(segments.filter({ hasText: "7 d" })),
    );
  });

  test("the open tab differs from the others, and so does the entry of the menu that it is under", async () => {
    await using page = await console.visit("/gpus", { scheme });
    await forceColours(page);
    const tabs = page.getByRole("navigation", { name: "Backends" }).getByRole("link");
    expect(await background(tabs.filter({ hasText: "GPUs" }))).not.toBe(
      await background(tabs.filter({ hasText: "Backends" })),
    );
    const entries = page.getByRole("navigation", { name: "Pages" }).getByRole("link");
    expect(await background(entries.filter({ hasText: "Backends" }))).not.toBe(
      await background(entries.filter({ hasText: "Usage" })),
    );
  });

  test("a switch that is on differs from one that is off, and both from the page", async () => {
    await using page = await console.visit("/keys", { scheme });
    await forceColours(page);
    const on = page.getByRole("switch", { checked: true }).first();
    const off = page.getByRole("switch", { checked: false }).first();
    expect(await background(on)).not.toBe(await background(off));
    for (const one of [on, off]) expect(await background(one, "::before")).not.toBe(await background(one));
  });

  test("the table and the lists keep the colours of the chart", async () => {
    await using page = await console.visit("/usage", { scheme });
    await forceColours(page);
    const bar = page.locator("path.fill.series-1").first();
    await bar.waitFor({ state: "attached" });
    const fill = await bar.evaluate((element) => getComputedStyle(element).fill);
    expect(await background(page.locator(".sums .swatch.series-1"))).toBe(fill);
    await page.goto(`${console.program.adminUrl}/`);
    await page.locator(".chart-legend .swatch.series-1").waitFor();
    expect(await background(page.locator(".chart-legend .swatch.series-1"))).toBe(fill);
  });
});
