import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { shared } from "../support/shared.ts";
import { hasBrowser, startConsole } from "./support/console-under-test.ts";
import { waitUntilDrawn, waitUntilLoaded } from "./support/seeded-console.ts";
import { seed, seedKeys, usage } from "./support/seed.ts";

interface Counts {
  panels: number;
  /** Outside of rows and tabs; a choice of several is one. */
  controls: number;
}

/** As many as each page had before there were teams, users, several backends, tokens and sign-in. */
const most: Readonly<Record<string, Counts>> = {
  "/": { panels: 5, controls: 16 },
  "/requests": { panels: 1, controls: 8 },
  "/requests/running": { panels: 1, controls: 3 },
  "/keys": { panels: 1, controls: 14 },
  "/keys/1": { panels: 5, controls: 16 },
  "/usage": { panels: 5, controls: 20 },
  "/gpus": { panels: 1, controls: 8 },
  "/settings": { panels: 4, controls: 4 },
  "/settings/prices": { panels: 2, controls: 5 },
  "/settings/account": { panels: 2, controls: 3 },
  "/help": { panels: 2, controls: 7 },
  "/help/playground": { panels: 1, controls: 6 },
  "/help/explain": { panels: 1, controls: 5 },
};

describe.skipIf(!hasBrowser)("a small house", () => {
  const names = ["anna", "ben", "chat", "ci", "dora", "emil", "indexer", "laptop", "nightly", "workshop"];
  const console = shared(() =>
    startConsole((dataDir) =>
      seed(dataDir, async (store) => {
        const ids = await seedKeys(store, names);
        const now = Math.floor(Date.now() / 60_000);
        const hours = Array.from({ length: 48 }, (_, hour) => now - hour * 60);
        await store.usage.add(
          ids.flatMap((id) => hours.map((minute) => Object.assign(usage(id, minute, [3, 5000, 700]), { model: "m" }))),
        );
      }),
    ),
  );

  const count = (page: Page): Promise<Counts> =>
    page.evaluate(() => {
      const seen = (selector: string): Element[] =>
        [...document.querySelectorAll(`main :is(${selector})`)].filter((element) => element.checkVisibility());
      const single = seen("button, a, summary, select, textarea, input:not([type=radio])");
      const choices = seen("fieldset.segmented");
      const isPages = (element: Element): boolean => element.closest("tbody, nav, .chart-zoom") === null;
      return {
        panels: seen("section.panel").length,
        controls: [...single, ...choices].filter(isPages).length,
      };
    });

  test.each(Object.entries(most))("%s has no more panels and controls than it had", async (path, before) => {
    await using page = await console.visit(path);
    await waitUntilLoaded(page);
    await waitUntilDrawn(page);
    const { panels, controls } = await count(page);
    const larger = { panels: Math.max(panels, before.panels), controls: Math.max(controls, before.controls) };
    expect(larger).toEqual(before);
    expect(await page.getByRole("navigation", { name: "Pages" }).getByRole("link").allTextContents()).toEqual([
      "Overview",
      "Requests",
      "API keys",
      "Usage",
      "Settings",
      "Help",
    ]);
  });

  test("hears of no team, user, owner, tag, cost or other backend where it looks at usage", async () => {
    await using page = await console.visit("/usage");
    const table = page.getByRole("region", { name: "Usage and cost" });
    await table.getByRole("rowheader", { name: "anna" }).waitFor();
    expect(
      await table.getByRole("radio").evaluateAll((radios) => radios.map((radio) => radio.getAttribute("value"))),
    ).toEqual(["key", "model", "key_model", "day", "client"]);
    expect(await table.getByRole("columnheader").allTextContents()).toEqual([
      "Key",
      "Requests",
      "Input",
      "Output",
      "Change",
    ]);
    expect(await page.locator(".figure dt").allTextContents()).toEqual(["Requests", "Input tokens", "Output tokens"]);
  });
});
