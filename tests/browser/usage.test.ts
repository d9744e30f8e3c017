import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { type ConsoleUnderTest, hasBrowser, startConsole } from "./support/console-under-test.ts";
import { reading, seed, seedKeys, usage } from "./support/seed.ts";

// Bun (1.4.5) forgets the preloaded default after the first file.
// Remove when a preloaded default holds for all files.
setDefaultTimeout(30_000);

interface Sums {
  request_count: number;
  input_tokens: number;
  output_tokens: number;
}

interface History {
  points: (Sums & { key_id: number; bucket_start: string })[];
}

const names = ["alpha", "beta", "gamma", ...Array.from({ length: 9 }, (_, index) => `small ${index}`)];
const silentMinutes = 90;

describe.skipIf(!hasBrowser)("usage", () => {
  let console: ConsoleUnderTest;
  let ids: number[];
  beforeAll(async () => {
    console = await startConsole((dataDir) =>
      seed(dataDir, async (store) => {
        ids = await seedKeys(store, names);
        const now = Math.floor(Date.now() / 60_000);
        // Nothing in the last hour and a half, so that no bucket changes under a test; then four hours, and a year of days.
        const recent = Array.from({ length: 240 }, (_, index) => now - silentMinutes - index);
        const days = Array.from({ length: 365 }, (_, index) => now - silentMinutes - (index + 1) * 1440);
        await store.usage.add(
          ids.flatMap((id, rank) =>
            [...recent, ...days].map((minute) =>
              usage(id, minute, [1, 10 * (rank + 1), Math.round(1000 / (rank + 1))]),
            ),
          ),
        );
        await store.gpu.add({ keyId: ids[0] ?? 0, recordedAt: Date.now(), readings: [reading(0)] });
        // Embeddings have no output, and this key nothing else.
        const [indexer = 0] = await seedKeys(store, ["indexer"], names.length);
        await store.usage.add([usage(indexer, now - 3 * 1440, [5, 500, 0])]);
      }),
    );
  });
  afterAll(() => console[Symbol.asyncDispose]());

  const chartOf = (page: Page): Locator => page.getByRole("group", { name: /by key over time$/ });
  const drawn = async (page: Page): Promise<void> => chartOf(page).locator("path.fill").first().waitFor();

  async function downloaded(page: Page, click: Promise<void>): Promise<string[][]> {
    const [download] = await Promise.all([page.waitForEvent("download"), click]);
    const text = await Bun.file(await download.path()).text();
    return text
      .trimEnd()
      .split("\r\n")
      .map((line) => line.split(","));
  }
  const csvOf = (page: Page, panel: string): Promise<string[][]> =>
    downloaded(page, page.getByRole("region", { name: panel }).getByRole("button", { name: "CSV" }).click());

  const sum = (rows: readonly string[][], column: number): number =>
    rows.slice(1).reduce((total, row) => total + Number(row[column]), 0);
  const add = (rows: readonly Sums[], field: keyof Sums): number => rows.reduce((total, row) => total + row[field], 0);

  /** Drags over a part of the chart, given in tenths of its plot. */
  async function drag(page: Page, from: number, to: number): Promise<void> {
    await chartOf(page).scrollIntoViewIfNeeded();
    const box = await chartOf(page).boundingBox();
    if (box === null) throw new Error("The chart is not there");
    const xAt = (tenths: number): number => box.x + 52 + ((box.width - 60) * tenths) / 10;
    await page.mouse.move(xAt(from), box.y + 100);
    await page.mouse.down();
    await page.mouse.move(xAt(to), box.y + 110, { steps: 5 });
    await page.mouse.up();
  }

  test("the chart's sums, the CSV's and the API's are one and the same", async () => {
    await using visit = await console.visit("/usage");
    const { page } = visit;
    await drawn(page);
    const { points } = await console.admin.expectOk<History>("GET", "/api/usage/history?days=1&bucket_minutes=2");
    const rows = await csvOf(page, "Output tokens");
    expect(rows[0]).toEqual(["bucket_start", "key_id", "key_name", "request_count", "input_tokens", "output_tokens"]);
    expect(rows.length - 1).toBe(points.length);
    expect([sum(rows, 3), sum(rows, 4), sum(rows, 5)]).toEqual([
      add(points, "request_count"),
      add(points, "input_tokens"),
      add(points, "output_tokens"),
    ]);
    const output = add(points, "output_tokens").toLocaleString("en-US");
    await page.getByText(`${output} out`, { exact: true }).waitFor();
    expect(await chartOf(page).getAttribute("aria-describedby")).toBeTruthy();
    await page.getByText(`${output} output tokens in all`).waitFor({ state: "attached" });
  });

  test("a key that is hidden leaves the chart, the figures and the CSV, and the address says so", async () => {
    await using visit = await console.visit("/usage");
    const { page } = visit;
    await drawn(page);
    await page.getByRole("checkbox", { name: "alpha" }).uncheck();
    await page.waitForURL(`**/usage?hide=${ids[0]}`);
    const rows = await csvOf(page, "Output tokens");
    expect(new Set(rows.slice(1).map((row) => row[2])).size).toBe(names.length - 1);
    await page.reload();
    await drawn(page);
    expect(await page.getByRole("checkbox", { name: "alpha" }).isChecked()).toBe(false);
    await page.getByRole("button", { name: "Show all" }).click();
    await page.getByRole("checkbox", { name: "alpha", checked: true }).waitFor();
  });

  test("dragging zooms, fetches finer buckets, and Reset and Back lead out again", async () => {
    await using visit = await console.visit("/usage?range=7d");
    const { page } = visit;
    await drawn(page);
    const finer = page.waitForRequest(/history\?.*bucket_minutes=(1|2|5)(&|$)/);
    await drag(page, 9.4, 9.95);
    await page.waitForURL(/from=.*&to=/);
    await finer;
    await page.getByText(/· (1|2|5)-minute buckets/).waitFor();
    const rows = await csvOf(page, "Output tokens");
    const parameters = new URL(page.url()).searchParams;
    const times = rows.slice(1).map((row) => row[0] ?? "");
    expect(times.length).toBeGreaterThan(0);
    expect((times[0] ?? "") >= (parameters.get("from") ?? "")).toBe(true);
    expect((times.at(-1) ?? "") < (parameters.get("to") ?? "")).toBe(true);
    await page.getByRole("button", { name: "Reset zoom" }).click();
    await page.waitForURL("**/usage?range=7d");
    await page.goBack();
    await page.waitForURL(/from=.*&to=/);
    await page.getByRole("button", { name: "Reset zoom" }).waitFor();
  });

  test("the keyboard moves along the chart, selects, zooms and resets", async () => {
    await using visit = await console.visit("/usage?range=6h");
    const { page } = visit;
    await drawn(page);
    await chartOf(page).focus();
    await page.keyboard.press("End");
    const tooltip = chartOf(page).locator(".tooltip");
    await tooltip.getByText("Nothing").waitFor();
    for (let press = 0; press < 4; press++) await page.keyboard.press("PageUp");
    await tooltip.getByText("alpha").waitFor();
    for (let press = 0; press < 3; press++) await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Enter");
    await page.waitForURL(/from=.*&to=/);
    await page.keyboard.press("Escape");
    await page.waitForURL((url) => !url.searchParams.has("from"));
  });

  test("the tooltip lists the eight that used most, the rest together, and the total", async () => {
    await using visit = await console.visit("/usage?range=6h");
    const { page } = visit;
    await drawn(page);
    const box = await chartOf(page).boundingBox();
    if (box === null) throw new Error("The chart is not there");
    await page.mouse.move(box.x + 52 + (box.width - 60) * 0.5, box.y + 120);
    const lines = chartOf(page).locator(".tooltip li");
    await lines.first().waitFor();
    const texts = await lines.locator(".name").allTextContents();
    expect(texts.slice(0, 3)).toEqual(["alpha", "beta", "gamma"]);
    expect(texts.slice(8)).toEqual(["and 4 more", "Total"]);
    const values = (await lines.locator(".value").allTextContents()).map((text) => Number(text.replaceAll(",", "")));
    expect(values.slice(0, 8)).toEqual(values.slice(0, 8).toSorted((a, b) => b - a));
    expect(values.slice(0, 9).reduce((total, value) => total + value, 0)).toBe(values[9] ?? Number.NaN);
  });

  test("keys beyond the eighth are drawn as one grey Other", async () => {
    await using visit = await console.visit("/usage");
    const { page } = visit;
    await drawn(page);
    expect(await chartOf(page).locator("path.fill").count()).toBe(9);
    expect(await chartOf(page).locator("path.fill.series-0").count()).toBe(1);
  });

  test("time in which nobody asked is a gap, not a line along the ground", async () => {
    await using visit = await console.visit("/usage?range=1h");
    const { page } = visit;
    await page.getByText("No requests in this time.").waitFor();
    await page.getByRole("radio", { name: "24 h" }).check();
    await drawn(page);
    const path = (await chartOf(page).locator("path.fill").first().getAttribute("d")) ?? "";
    expect(path.match(/M/g)?.length).toBeLessThan(150);
  });

  test("the daily table reaches back a year, by day and by key, and its CSV is the API's", async () => {
    await using visit = await console.visit("/usage?days=365");
    const { page } = visit;
    const daily = page.getByRole("region", { name: "Daily" });
    await daily.getByText("365 rows").or(daily.getByText("366 rows")).waitFor();
    const rows = await console.admin.expectOk<(Sums & { date: string })[]>("GET", "/api/usage/daily?days=365");
    const byDay = await csvOf(page, "Daily");
    expect(byDay.length - 1).toBe(new Set(rows.map(({ date }) => date)).size);
    expect(sum(byDay, 3)).toBe(add(rows, "output_tokens"));
    await daily.getByRole("radio", { name: "By day and key" }).check();
    await daily.getByRole("columnheader", { name: "Key" }).waitFor();
    const byKey = await csvOf(page, "Daily");
    expect(byKey.length - 1).toBe(rows.length);
    expect([sum(byKey, 3), sum(byKey, 5)]).toEqual([add(rows, "request_count"), add(rows, "output_tokens")]);
    const before = await daily.getByRole("row").count();
    await daily.getByRole("button", { name: "Show more" }).click();
    await daily
      .getByRole("row")
      .nth(before + 50)
      .waitFor({ state: "attached" });
  });

  test("the filter holds for chart and days alike, and where nothing matches it offers to clear", async () => {
    await using visit = await console.visit("/usage?q=alpha");
    const { page } = visit;
    await drawn(page);
    expect(await page.getByRole("checkbox").count()).toBe(1);
    const daily = await csvOf(page, "Daily");
    const perDay = Number(daily[2]?.[3]);
    expect(perDay % 1000).toBe(0);
    await page.getByRole("searchbox").fill("nobody");
    await page.getByText("No key that matches was used in this time.").waitFor();
    await page.getByText("Nothing matches in these days.").waitFor();
    await page.getByRole("button", { name: "Clear the filter" }).first().click();
    await page.waitForURL("**/usage");
    await drawn(page);
  });

  test("a chart without bars says what is the reason", async () => {
    await using visit = await console.visit("/usage?range=7d&q=alpha");
    const { page } = visit;
    await page.getByRole("checkbox", { name: "alpha" }).uncheck();
    await page.getByText("All keys of this time are hidden.").waitFor();
    await page.getByRole("button", { name: "Show all keys" }).click();
    await drawn(page);
    await page.goto(`${console.program.adminUrl}/usage?from=2026-01-01T00:00&to=2026-01-02T00:00`);
    await page.getByText("Only days are kept from so long ago.").waitFor();
    await page.goto(`${console.program.adminUrl}/usage?range=7d&q=indexer`);
    await page.getByText("No output tokens in this time.").waitFor();
    await page.getByRole("radio", { name: "Requests", exact: true }).check();
    await drawn(page);
  });

  test("a refresh leaves the focus where it is", async () => {
    await using visit = await console.visit("/usage", { ownClock: true });
    const { page } = visit;
    await drawn(page);
    await page.getByRole("checkbox", { name: "gamma" }).focus();
    const refreshed = page.waitForResponse("**/api/usage/history*");
    await page.clock.runFor(16_000);
    await refreshed;
    await page.getByText("Updated just now").waitFor();
    expect(await page.evaluate(() => document.activeElement?.closest("label")?.textContent)).toBe("gamma");
  });

  test("without a pointer over it, the chart shows no tooltip", async () => {
    await using visit = await console.visit("/usage");
    await drawn(visit.page);
    expect(await chartOf(visit.page).locator(".tooltip").isVisible()).toBe(false);
  });

  test("today and all time are the API's sums", async () => {
    await using visit = await console.visit("/usage");
    const total = await console.admin.expectOk<Sums>("GET", "/api/usage/total");
    const title = `${total.output_tokens.toLocaleString("en-US")} by the keys that exist`;
    await visit.page.locator(`[title^="${title}"]`).waitFor();
  });

  test("a failed load keeps the chart and offers Try again", async () => {
    await using visit = await console.visit("/usage", { provokes: /ERR_FAILED|status of 500/ });
    const { page } = visit;
    await drawn(page);
    await page.route("**/api/usage/history*", (route) =>
      route.fulfill({ status: 500, json: { error: "Internal error" } }),
    );
    await page.getByRole("button", { name: "Refresh" }).click();
    const bar = page.getByRole("alert");
    await bar.getByText(/Internal error\. Showing what was loaded/).waitFor();
    expect(await chartOf(page).locator("path.fill").count()).toBe(9);
    await page.unroute("**/api/usage/history*");
    await bar.getByRole("button", { name: "Try again" }).click();
    await bar.waitFor({ state: "detached" });
  });

  test.each(["/usage", "/gpus"])("no part of %s fails to load in silence", async (path) => {
    await using visit = await console.visit(path, { provokes: /status of 500/ });
    const { page } = visit;
    const refuse = { status: 500, json: { error: "Internal error" } };
    for (const part of path === "/usage" ? ["usage/daily"] : ["gpu-stats/power-history", "usage/history"]) {
      await page.route(`**/api/${part}*`, (route) => route.fulfill(refuse));
      await page.reload();
      await page.getByRole("alert").getByText("Internal error.").waitFor();
      await page.unroute(`**/api/${part}*`);
      await page.getByRole("button", { name: "Try again" }).click();
      await page.getByRole("alert").waitFor({ state: "detached" });
    }
  });
});
