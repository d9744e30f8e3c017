import { describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { hasBrowser } from "./support/console-under-test.ts";
import { csvOf, startUsageConsole, sumOfColumn, sumOfField, type Sums, waitForBars } from "./support/usage-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("usage", () => {
  const console = shared(startUsageConsole);
  const table = (page: Page): Locator => page.getByRole("region", { name: "Usage and cost" });
  const group = (page: Page, label: string): Promise<void> =>
    table(page).getByRole("radio", { name: label, exact: true }).check();
  const figure = (page: Page, label: string): Locator =>
    page.locator(".figure").filter({ has: page.getByText(label, { exact: true }) });

  test("has one bar, one line of figures, one chart and one table, whose sums are the API's", async () => {
    await using page = await console.visit("/usage?range=7d");
    await waitForBars(page);
    await table(page).getByText("13 rows").waitFor();
    expect(await page.getByRole("region").count()).toBe(2);
    expect(await page.getByRole("group", { name: "Range" }).count()).toBe(1);
    expect(await page.getByRole("button", { name: "CSV" }).count()).toBe(1);
    const rows = await console.admin.expectOk<Sums[]>("GET", "/api/usage/daily?days=7");
    const daily = rows.filter((row) => (row as Sums & { date: string }).date > dayAgo(7));
    const output = sumOfField(daily, "output_tokens").toLocaleString("en-US");
    await figure(page, "Output tokens").locator(`.value[title="${output}"]`).waitFor();
    await table(page).locator("tfoot").getByText(output, { exact: true }).waitFor();
    await page.getByText(`${output} output tokens in total`).waitFor({ state: "attached" });
    const csv = await csvOf(page, "Usage and cost");
    expect(csv[0]?.slice(0, 6)).toEqual([
      "key_id",
      "key_name",
      "request_count",
      "prompt_tokens",
      "from_cache_tokens",
      "output_tokens",
    ]);
    expect([csv.length - 1, sumOfColumn(csv, 2), sumOfColumn(csv, 5)]).toEqual([
      13,
      sumOfField(daily, "request_count"),
      sumOfField(daily, "output_tokens"),
    ]);
  });

  test("offers to group by what has rows, and the address keeps it", async () => {
    await using page = await console.visit("/usage?range=30d");
    const labels = table(page).getByRole("group", { name: "Group by" }).locator("label");
    await table(page).getByRole("button", { name: "alpha" }).waitFor();
    expect(await labels.allTextContents()).toEqual(["Key", "Model", "Key and model", "Day", "Client"]);
    await group(page, "Day");
    await page.waitForURL("**/usage?range=30d&by=day");
    await table(page)
      .getByText(/^(29|30) rows$/)
      .waitFor();
    await page.reload();
    await table(page)
      .getByRole("button", { name: dayAgo(3) })
      .click();
    await page.waitForURL(new RegExp(`from=${dayAgo(3)}T00%3A00&to=${dayAgo(2)}T00%3A00`));
    await table(page).getByText("1 row", { exact: true }).waitFor();
    await group(page, "Client");
    await page.getByText("By the request log.").waitFor();
  });

  test("a row filters all of the page, and a chip takes the filter away again", async () => {
    await using page = await console.visit("/usage?range=30d");
    await waitForBars(page);
    await table(page).getByRole("button", { name: "beta" }).click();
    const id = (await console.admin.listKeys()).find(({ name }) => name === "beta")?.id;
    await page.waitForURL(`**/usage?range=30d&key=${id}`);
    await table(page).getByRole("rowheader", { name: "No model named" }).waitFor();
    await page.getByText(/^1 model, [\d,]+ output tokens in total/).waitFor({ state: "attached" });
    const rows = await console.admin.expectOk<(Sums & { key_name: string; date: string })[]>(
      "GET",
      "/api/usage/daily?days=30",
    );
    const ofKey = rows.filter((row) => row.key_name === "beta" && row.date > dayAgo(30));
    const output = sumOfField(ofKey, "output_tokens").toLocaleString("en-US");
    await figure(page, "Output tokens").locator(`.value[title="${output}"]`).waitFor();
    await page.getByRole("link", { name: "Open key" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Key: beta Clear this filter" }).click();
    await page.waitForURL("**/usage?range=30d");
    await table(page).getByRole("button", { name: "alpha" }).waitFor();
  });

  test.each(["abc", "999999"])("the filter key=%s matches nothing, and can be removed", async (key) => {
    await using page = await console.visit(`/usage?key=${key}`);
    await table(page).getByText("No requests in this period").waitFor();
    await page.getByRole("button", { name: `Key: ${key} Clear this filter` }).click();
    await page.waitForURL("**/usage");
    await waitForBars(page);
  });

  test("the change is against the same elapsed time of the period before", async () => {
    await using page = await console.visit("/usage?range=7d");
    await table(page).getByRole("columnheader", { name: "Change" }).waitFor();
    await page
      .getByText(/Change is against \d+ \w+ to \d+ \w+(, \d\d:00 KST)?\.$|Change is against \d+ \w+ to/)
      .waitFor();
    await figure(page, "Requests").getByText("vs. before").waitFor();
    const csv = await csvOf(page, "Usage and cost");
    expect(csv[0]?.slice(-2)).toEqual(["tokens_before", "cost_before"]);
    await page.goto(`${console.program.adminUrl}/usage?range=365d`);
    await table(page).getByText("13 rows").waitFor();
    expect(await table(page).getByRole("columnheader", { name: "Change" }).count()).toBe(0);
  });

  test("a chart without bars states the reason", async () => {
    const id = (await console.admin.listKeys()).find(({ name }) => name === "indexer")?.id;
    await using page = await console.visit(`/usage?range=7d&key=${id}`);
    await page.getByText("No output tokens in this period").waitFor();
    await page.getByRole("radio", { name: "Requests", exact: true }).check();
    await waitForBars(page);
  });

  test("a refresh keeps the focus", async () => {
    await using page = await console.visit("/usage", { fakeClock: true });
    await waitForBars(page);
    await table(page).getByRole("button", { name: "gamma" }).focus();
    const refreshed = page.waitForResponse("**/api/usage/costs*");
    await page.clock.runFor(61_000);
    await refreshed;
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("gamma");
  });

  test("a range of centuries is the year that is kept", async () => {
    await using page = await console.visit("/usage?from=1500-01-01T00:00&to=2999-01-01T00:00");
    await waitForBars(page);
    await page.getByText(/· \d-day bars$/).waitFor();
    await table(page).getByText("13 rows").waitFor();
  });

  test.each(["/usage", "/gpus"])("%s reports every failed request", async (path) => {
    await using page = await console.visit(path, { expectedErrors: /status of 500/ });
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

/** A day in Seoul, counted back from now. */
const dayAgo = (days: number): string =>
  new Date(Date.now() + 9 * 3_600_000 - days * 86_400_000).toISOString().slice(0, 10);
