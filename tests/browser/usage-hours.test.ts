import { describe, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { dayMs, floorToStep } from "../../console/src/lib/seoul-time.ts";
import { type ConsoleUnderTest, hasBrowser, startConsole } from "./support/console-under-test.ts";
import { reading, seed, seedKeys, usage } from "./support/seed.ts";
import { chartOf, csvOf, sumOfColumn, waitForBars } from "./support/usage-console.ts";
import { shared } from "../support/shared.ts";

const minutesPerDay = 1440;
/** Bars of 7 days are narrower than an hour. */
const wide = { width: 2400, height: 1000 };

/** A day in the middle of the last week, in each hour of which a key has used 7 tokens; its minute counts were deleted. */
async function startConsoleWithHours(): Promise<ConsoleUnderTest> {
  const now = Math.floor(Date.now() / 60_000);
  return startConsole(
    async (dataDir) => {
      await seed(dataDir, async (store) => {
        const [id = 0] = await seedKeys(store, ["alpha"]);
        const hours = Array.from({ length: 24 }, (_, hour) => now - 5 * minutesPerDay + 60 * hour);
        await store.usage.add([...hours, now - 120].map((minute) => usage(id, minute, [1, 2, 7])));
        await store.gpu.add({ keyId: id, recordedAt: (now - 5 * minutesPerDay) * 60_000, readings: [reading(0)] });
      });
      using database = new Database(join(dataDir, "tollgate.db"));
      database.run("delete from usage_minute where minute < ?", [now - 3 * minutesPerDay]);
    },
    { USAGE_MINUTES_DAYS: "1" },
  );
}

describe.skipIf(!hasBrowser)("usage whose minute counts are no longer kept", () => {
  const console = shared(() => startConsoleWithHours());

  const history = (page: Page): Locator => page.getByRole("region", { name: "Output tokens" });
  const visitWide = async (path: string, options = {}) => {
    const page = await console.visit("/help", options);
    await page.setViewportSize(wide);
    await page.goto(new URL(path, page.url()).href);
    return page;
  };

  test("is a chart of hours, with the same sum in its figures, its bars and its CSV", async () => {
    await using page = await visitWide("/help");
    const [response] = await Promise.all([
      page.waitForResponse(/usage\/chart\?.*bucket_minutes=(10|15|20|30)(&|$)/),
      page.goto(new URL("/usage?range=7d", page.url()).href),
    ]);
    expect(await response.json()).toMatchObject({ bucket_minutes: 60 });
    await waitForBars(page);
    await history(page)
      .getByText(/· 1-hour bars/)
      .waitFor();
    await page.getByText("175 output tokens in total").waitFor({ state: "attached" });
    expect(sumOfColumn(await csvOf(page, "Usage and cost"), 5)).toBe(175);
    const box = await chartOf(page).boundingBox();
    if (box === null) throw new Error("The chart is not visible");
    // The chart ends now and begins with a Seoul day, so how far it reaches depends on the time of day.
    const now = Date.now();
    const from = floorToStep(now, dayMs) - 6 * dayMs;
    const middle = (now - 4.5 * dayMs - from) / (now - from);
    await page.mouse.move(box.x + 52 + (box.width - 60) * middle, box.y + 120);
    await chartOf(page).locator(".tooltip li").getByText("7", { exact: true }).waitFor();
  });

  test("has its energy in the same hours", async () => {
    await using page = await visitWide("/gpus?range=7d");
    await page.getByText(/only in 1-hour buckets/).waitFor();
    const figure = page.locator("dl.figures > div", { hasText: "Wh per 1,000 output tokens" }).locator("dd");
    await figure.getByText(/^\d/).waitFor();
  });

  test("is loaded anew once the server has wider buckets than before", async () => {
    await using page = await console.visit("/help", { fakeClock: true });
    const requested: URL[] = [];
    await page.route("**/api/usage/chart?*", (route, request) => {
      const url = new URL(request.url());
      requested.push(url);
      const response = new URL(url);
      response.searchParams.set("bucket_minutes", requested.length === 1 ? "30" : "180");
      return route.continue({ url: response.href });
    });
    await page.goto(new URL("/usage?range=24h", page.url()).href);
    await history(page)
      .getByText(/· 30-minute bars/)
      .waitFor();
    await page.clock.runFor(16_000);
    await history(page)
      .getByText(/· 3-hour bars/)
      .waitFor();
    await page.getByText("7 output tokens in total").waitFor({ state: "attached" });
    expect(requested.map(({ searchParams }) => searchParams.has("since"))).toEqual([false, true, false]);
  });
});
