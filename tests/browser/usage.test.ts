import { describe, expect, test } from "bun:test";
import { hasBrowser, showMore } from "./support/console-under-test.ts";
import {
  chartOf,
  csvOf,
  startUsageConsole,
  sumOfColumn,
  sumOfField,
  type Sums,
  waitForBars,
} from "./support/usage-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("usage", () => {
  const console = shared(async () => (await startUsageConsole()).console);

  test("the daily table shows a year, by day and by key, and its CSV has the API's sums", async () => {
    await using visit = await console.visit("/usage?days=365");
    const { page } = visit;
    const daily = page.getByRole("region", { name: "Daily usage" });
    await daily.getByText("364 rows").or(daily.getByText("365 rows")).waitFor();
    const rows = await console.admin.expectOk<(Sums & { date: string })[]>("GET", "/api/usage/daily?days=364");
    const byDay = await csvOf(page, "Daily usage");
    expect(byDay.length - 1).toBe(new Set(rows.map(({ date }) => date)).size);
    expect(sumOfColumn(byDay, 3)).toBe(sumOfField(rows, "output_tokens"));
    await daily.getByRole("radio", { name: "By day and key" }).check();
    await daily.getByRole("columnheader", { name: "Key" }).waitFor();
    const byKey = await csvOf(page, "Daily usage");
    expect(byKey.length - 1).toBe(rows.length);
    expect([sumOfColumn(byKey, 3), sumOfColumn(byKey, 5)]).toEqual([
      sumOfField(rows, "request_count"),
      sumOfField(rows, "output_tokens"),
    ]);
    const before = await daily.getByRole("row").count();
    await showMore(daily);
    await daily
      .getByRole("row")
      .nth(before + 50)
      .waitFor({ state: "attached" });

    // Each day has a row of the key, so the tenth is not among the first hundred rows.
    const renamed = daily.getByRole("row").filter({ hasText: "renamed" }).nth(9);
    const { id = 0 } = (await console.admin.listKeys()).find(({ name }) => name === "small 8") ?? {};
    await console.admin.updateKey(id, { name: "renamed" });
    await page.getByRole("button", { name: "Refresh" }).click();
    await renamed.waitFor({ state: "attached" });
    await console.admin.updateKey(id, { name: "small 8" });
  });

  test("the filter applies to the chart and the daily table, and can be cleared if nothing matches", async () => {
    await using visit = await console.visit("/usage?q=alpha");
    const { page } = visit;
    await waitForBars(page);
    expect(await page.getByRole("checkbox").count()).toBe(1);
    const daily = await csvOf(page, "Daily usage");
    const perDay = Number(daily[2]?.[3]);
    expect(perDay % 1000).toBe(0);
    await page.getByRole("searchbox").fill("no such key");
    await page.getByText("No matching key was used in this period").waitFor();
    await page.getByText("No matching usage on these days").waitFor();
    await page.getByRole("button", { name: "Clear filter" }).first().click();
    await page.waitForURL("**/usage");
    await waitForBars(page);
  });

  test("a chart without bars states the reason", async () => {
    await using visit = await console.visit("/usage?range=7d&q=alpha");
    const { page } = visit;
    await page.getByRole("checkbox", { name: "alpha" }).uncheck();
    await page.getByText("All keys of this period are hidden").waitFor();
    await page.getByRole("button", { name: "Show all keys" }).click();
    await waitForBars(page);
    await page.goto(`${console.program.adminUrl}/usage?from=2026-01-01T00:00&to=2026-01-02T00:00`);
    await waitForBars(page);
    await page.goto(`${console.program.adminUrl}/usage?range=7d&q=indexer`);
    await page.getByText("No output tokens in this period").waitFor();
    await page.getByRole("radio", { name: "Requests", exact: true }).check();
    await waitForBars(page);
  });

  test("a refresh keeps the focus", async () => {
    await using visit = await console.visit("/usage", { fakeClock: true });
    const { page } = visit;
    await waitForBars(page);
    await page.getByRole("checkbox", { name: "gamma" }).focus();
    const refreshed = page.waitForResponse("**/api/usage/chart*");
    await page.clock.runFor(16_000);
    await refreshed;
    await page.getByText(/^Updated 1\d s ago$/).waitFor();
    expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("gamma");
  });

  test("all-time figures match the API", async () => {
    await using visit = await console.visit("/usage");
    const total = await console.admin.expectOk<Sums>("GET", "/api/usage/total");
    const title = `${total.output_tokens.toLocaleString("en-US")} by all existing keys`;
    await visit.page.locator(`[title^="${title}"]`).waitFor();
  });

  test("the figures follow the filter", async () => {
    const keys = await console.admin.listKeys();
    const alpha = keys.find(({ name }) => name === "alpha");
    const daily = await console.admin.expectOk<(Sums & { key_id: number; date: string })[]>(
      "GET",
      "/api/usage/daily?days=7",
    );
    const { date } = await console.admin.expectOk<{ date: string }>("GET", "/api/usage/summary");
    const today = daily.filter((row) => row.key_id === alpha?.id && row.date === date);
    await using visit = await console.visit(`/usage?key=${alpha?.id}`);
    const { page } = visit;
    const figure = page.locator(".figure", { hasText: "Output tokens today" });
    const allTime = (alpha?.total_output_tokens ?? Number.NaN).toLocaleString("en-US");
    await figure.locator(`[title="${allTime} by the shown keys since their creation"]`).waitFor();
    const exact = sumOfField(today, "output_tokens").toLocaleString("en-US");
    await figure.locator(`.value[title="${exact}"]`).waitFor();
    await page.getByRole("button", { name: "Show all keys" }).click();
    await figure.locator('[title$="by all existing keys since their creation"]').waitFor();
  });

  test.each(["abc", "999999", "0"])(
    "the filter key=%s says that it matches nothing, and can be removed",
    async (key) => {
      await using visit = await console.visit(`/usage?key=${key}`);
      const { page } = visit;
      await page.getByRole("button", { name: `Key ${key} matches nothing Show all keys` }).click();
      await page.waitForURL("**/usage");
      await waitForBars(page);
    },
  );

  test("a range of centuries is the year that is kept", async () => {
    await using visit = await console.visit("/usage?from=1500-01-01T00:00&to=2999-01-01T00:00");
    const { page } = visit;
    await waitForBars(page);
    await page.getByText(/· \d-day bars$/).waitFor();
  });

  test("a failed request keeps the chart and offers to try again", async () => {
    await using visit = await console.visit("/usage", { expectedErrors: /ERR_FAILED|status of 500/ });
    const { page } = visit;
    await waitForBars(page);
    await page.route("**/api/usage/chart*", (route) =>
      route.fulfill({ status: 500, json: { error: "Internal error" } }),
    );
    await page.getByRole("button", { name: "Refresh" }).click();
    const bar = page.getByRole("alert");
    await bar.getByText(/Internal error\. Showing data loaded/).waitFor();
    expect(await chartOf(page).locator("path.fill").count()).toBe(9);
    await page.unroute("**/api/usage/chart*");
    await bar.getByRole("button", { name: "Try again" }).click();
    await bar.waitFor({ state: "detached" });
  });

  test.each(["/usage", "/gpus"])("%s reports every failed request", async (path) => {
    await using visit = await console.visit(path, { expectedErrors: /status of 500/ });
    const { page } = visit;
    const refuse = { status: 500, json: { error: "Internal error" } };
    for (const part of path === "/usage" ? ["usage/costs"] : ["gpu-stats/history", "usage/chart"]) {
      await page.route(`**/api/${part}*`, (route) => route.fulfill(refuse));
      await page.reload();
      await page.getByRole("alert").getByText("Internal error.").waitFor();
      await page.unroute(`**/api/${part}*`);
      await page.getByRole("alert").getByRole("button", { name: "Try again" }).click();
      await page.getByRole("alert").waitFor({ state: "detached" });
    }
  });
});
