import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mainThreadDuring } from "./support/page-cost.ts";
import { shared } from "../support/shared.ts";
import type { Page } from "playwright-core";
import { hasBrowser, startConsole } from "./support/console-under-test.ts";
import { waitUntilDrawn } from "./support/seeded-console.ts";
import { seed, seedKeys, usage } from "./support/seed.ts";

setDefaultTimeout(60_000);

const budgetMs = 300;
const keyCount = 50;

describe.skipIf(!hasBrowser)("with fifty keys and a year of usage", () => {
  const console = shared(() =>
    startConsole((dataDir) =>
      seed(dataDir, async (store) => {
        const ids = await seedKeys(
          store,
          Array.from({ length: keyCount }, (_, index) => `key ${index}`),
        );
        const now = Math.floor(Date.now() / 60_000);
        const hours = Array.from({ length: 30 * 24 }, (_, index) => now - index * 60);
        // From day 30 on: late in the evening, the hours reach back only to day 29.
        const days = Array.from({ length: 336 }, (_, index) => now - (index + 30) * 1440);
        for (const id of ids) {
          await store.usage.add([...hours, ...days].map((minute) => usage(id, minute, [id, id * 900, id * 300])));
        }
      }),
    ),
  );

  async function measure(page: Page, act: () => Promise<unknown>): Promise<number> {
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    return mainThreadDuring(session, async () => {
      await act();
      await waitUntilDrawn(page);
    });
  }

  test("a chart of 30 days renders within its budget", async () => {
    await using page = await console.visit("/usage", { fresh: true });
    await page.locator("path.fill").first().waitFor({ state: "attached" });
    const ms = await measure(page, async () => {
      await page.getByRole("radio", { name: "30 d" }).first().check();
      await page.getByText("3-hour bars").waitFor();
      await page.locator(".chart:not(.loading) path.fill").nth(8).waitFor({ state: "attached" });
    });
    expect(ms).toBeLessThan(budgetMs);
  });

  test("a table of 365 days renders within its budget", async () => {
    await using page = await console.visit("/usage?range=30d&by=day", { fresh: true });
    const table = page.getByRole("region", { name: "Usage and cost" });
    await table.getByText("30 rows").waitFor();
    const ms = await measure(page, async () => {
      await page.getByRole("button", { name: "Days" }).click();
      await page.getByRole("button", { name: "365 d" }).click();
      await table.getByText(/^36\d rows$/).waitFor();
    });
    expect(ms).toBeLessThan(budgetMs);
  });
});
