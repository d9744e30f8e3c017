import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { type ConsoleUnderTest, hasBrowser } from "./support/console-under-test.ts";
import { chartOf, csvOf, keyNames, startUsageConsole, waitForBars } from "./support/usage-console.ts";

describe.skipIf(!hasBrowser)("usage legend", () => {
  let console: ConsoleUnderTest;
  let keyIds: number[];
  beforeAll(async () => {
    ({ console, keyIds } = await startUsageConsole());
  });
  afterAll(() => console[Symbol.asyncDispose]());

  const nameIn = (page: Page, name: string): Locator =>
    page.locator(".legend").getByRole("button", { name, exact: true });
  const numbers = async (row: Locator): Promise<number[]> =>
    (await row.locator("td").allTextContents()).map((text) => Number(text.replaceAll(",", "")));
  const keysInCsv = async (page: Page): Promise<Set<string | undefined>> =>
    new Set((await csvOf(page, "Output tokens")).slice(1).map((row) => row[2]));

  test("has a row for the other keys with their number and their sum, which opens their list", async () => {
    await using visit = await console.visit("/usage");
    const { page } = visit;
    await waitForBars(page);
    const rows = page.locator(".legend tbody tr");
    expect(await rows.count()).toBe(9);
    const other = rows.filter({ hasText: "Other (4 keys)" });
    const sum = await numbers(other);
    await other.getByRole("button", { name: "List" }).click();
    expect(await rows.count()).toBe(13);
    const parts = await Promise.all([9, 10, 11, 12].map((index) => numbers(rows.nth(index))));
    expect(parts.reduce((sums, part) => sums.map((value, column) => value + (part[column] ?? 0)))).toEqual(sum);
  });

  test("a click on a name shows only that key, and a second one all keys again", async () => {
    await using visit = await console.visit("/usage");
    const { page } = visit;
    await waitForBars(page);
    await nameIn(page, "beta").click();
    await page.waitForURL(`**/usage?key=${keyIds[1]}`);
    await chartOf(page).locator("path.fill").nth(1).waitFor({ state: "detached" });
    expect(await keysInCsv(page)).toEqual(new Set(["beta"]));
    expect(await nameIn(page, "beta").getAttribute("aria-pressed")).toBe("true");
    await nameIn(page, "beta").click();
    await page.waitForURL((url) => url.pathname === "/usage" && url.search === "");
    await nameIn(page, "alpha").waitFor();
  });

  test.each(["Control", "Shift", "Meta"] as const)("a click with %s hides the key", async (modifier) => {
    await using visit = await console.visit("/usage");
    const { page } = visit;
    await waitForBars(page);
    await nameIn(page, "beta").click({ modifiers: [modifier] });
    await page.waitForURL(`**/usage?hide=${keyIds[1]}`);
    expect((await keysInCsv(page)).has("beta")).toBe(false);
    await nameIn(page, "beta").click({ modifiers: [modifier] });
    await page.waitForURL((url) => url.search === "");
  });

  test("the keyboard does the same", async () => {
    await using visit = await console.visit("/usage");
    const { page } = visit;
    await waitForBars(page);
    await nameIn(page, "beta").focus();
    await page.keyboard.press("Control+Enter");
    await page.waitForURL(`**/usage?hide=${keyIds[1]}`);
    await page.keyboard.press("Control+Enter");
    await page.waitForURL((url) => url.search === "");
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/usage?key=${keyIds[1]}`);
    expect(await nameIn(page, "beta").evaluate((element) => element === document.activeElement)).toBe(true);
  });

  test("a name keeps the focus while its key is hidden and shown, however long the page is open", async () => {
    await using visit = await console.visit("/usage", { fakeClock: true });
    const { page } = visit;
    await waitForBars(page);
    await nameIn(page, "beta").focus();
    await page.keyboard.press("Control+Enter");
    await page.waitForURL(`**/usage?hide=${keyIds[1]}`);
    // The key that takes its colour.
    await nameIn(page, "small 5").waitFor();
    await page.clock.runFor(3000);
    await page.keyboard.press("Control+Enter");
    await page.waitForURL((url) => url.search === "");
    expect(await nameIn(page, "beta").evaluate((element) => element === document.activeElement)).toBe(true);
  });

  test("Other can be hidden, and shown without the keys above it, which then have colours of their own", async () => {
    await using visit = await console.visit("/usage");
    const { page } = visit;
    await waitForBars(page);
    await page.getByRole("checkbox", { name: "Other (4 keys)" }).uncheck();
    await page.waitForURL("**/usage?hide=0");
    expect(await chartOf(page).locator("path.fill.series-0").count()).toBe(0);
    expect((await keysInCsv(page)).size).toBe(keyNames.length - 4);
    await page.getByRole("checkbox", { name: "Other (4 keys)" }).check();
    await nameIn(page, "Other (4 keys)").click();
    await chartOf(page).locator("path.fill").nth(4).waitFor({ state: "detached" });
    expect(await chartOf(page).locator("path.fill").count()).toBe(4);
    expect((await keysInCsv(page)).size).toBe(4);
    await page.getByText("8 hidden.").waitFor();
  });

  test("the period before is not compared while Other is hidden", async () => {
    await using visit = await console.visit("/usage?compare=1&hide=0");
    const { page } = visit;
    await waitForBars(page);
    await page.getByText("Show Other to compare with the period before").waitFor();
    expect(await page.locator(".comparison, path.overlay").count()).toBe(0);
    await page.getByRole("checkbox", { name: "Other (4 keys)" }).check();
    await page.locator(".comparison").waitFor();
  });

  test("Top 5, Lines and Share are choices, and part of the URL", async () => {
    await using visit = await console.visit("/usage");
    const { page } = visit;
    await waitForBars(page);
    await page.getByRole("radio", { name: "Top 5" }).check();
    await page.waitForURL("**/usage?view=top5");
    await nameIn(page, "Other (7 keys)").waitFor();
    expect(await chartOf(page).locator("path.fill").count()).toBe(6);
    await page.getByRole("radio", { name: "Lines" }).check();
    await chartOf(page).locator("path.line").nth(5).waitFor({ state: "attached" });
    expect(await chartOf(page).locator("path.fill").count()).toBe(0);
    await page.getByRole("radio", { name: "Share" }).check();
    await waitForBars(page);
    expect(await chartOf(page).locator(".y-tick text").allTextContents()).toContain("100%");
    await page.reload();
    await waitForBars(page);
    expect(await page.getByRole("radio", { name: "Share" }).isChecked()).toBe(true);
    await chartOf(page).focus();
    await page.keyboard.press("PageUp");
    await chartOf(page)
      .locator(".tooltip li")
      .getByText(/^[\d,]+ \(\d+(\.\d)?%\)$/)
      .first()
      .waitFor();
  });

  test("the legend scrolls with the page, not in a box", async () => {
    await using visit = await console.visit("/usage", { phone: true });
    const { page } = visit;
    await waitForBars(page);
    await page.getByRole("button", { name: "List" }).tap();
    await page.getByRole("checkbox", { name: "small 8" }).waitFor();
    const [inner, outer] = await page
      .locator(".legend")
      .evaluate((element) => [element.scrollHeight, element.clientHeight]);
    expect(inner).toBe(outer ?? 0);
  });
});
