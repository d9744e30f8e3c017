import { describe, expect, test } from "bun:test";
import type { Locator, Page, Route } from "playwright-core";
import { violations } from "./support/axe.ts";
import { hasBrowser } from "./support/console-under-test.ts";
import { waitUntilDrawn } from "./support/seeded-console.ts";
import { chartOf, startUsageConsole, waitForBars } from "./support/usage-console.ts";
import { shared } from "../support/shared.ts";

const dayMs = 86_400_000;
const refuse = { status: 500, json: { error: "Internal error" } };
const parameterOf = (route: Route, name: string): string | null =>
  new URL(route.request().url()).searchParams.get(name);
/** Whether the request is for more than three weeks. */
const isLong = (route: Route): boolean => {
  const [from, to] = [parameterOf(route, "since") ?? parameterOf(route, "from"), parameterOf(route, "until")];
  return to === null
    ? parameterOf(route, "bucket_minutes") === "180"
    : Date.parse(to) - Date.parse(from ?? "") > 21 * dayMs;
};

describe.skipIf(!hasBrowser)("while data loads", () => {
  const console = shared(startUsageConsole);

  const panel = (page: Page, name: string): Locator => page.getByRole("region", { name });
  const hint = async (page: Page, name: string): Promise<string> =>
    (await panel(page, name).locator(".hint").textContent()) ?? "";
  const csvButton = (page: Page, name: string): Locator => panel(page, name).getByRole("button", { name: "CSV" });
  /** The range in the heading, without the state of loading. */
  const rangeOf = (text: string): string => text.split(" · ").slice(0, 2).join(" · ");

  test("another range changes no label of the chart, no row and no CSV before its data", async () => {
    await using page = await console.visit("/usage");
    await waitForBars(page);
    const rows = panel(page, "Usage and cost").locator("tbody, tfoot");
    await rows.last().waitFor();
    const held = Promise.withResolvers<void>();
    await page.route("**/api/usage/{chart,costs}*", async (route) => {
      if (isLong(route)) await held.promise;
      await route.continue();
    });
    const texts = async (): Promise<(string | null)[]> => [
      rangeOf(await hint(page, "Output tokens")),
      await chartOf(page).locator(".visually-hidden").first().textContent(),
      ...(await rows.allTextContents()),
      ...(await page.locator(".figures .value").allTextContents()),
    ];
    const before = await texts();
    await page.getByRole("radio", { name: "30 d" }).first().check();
    await page.waitForURL("**/usage?range=30d");
    await waitUntilDrawn(page);
    expect(await texts()).toEqual(before);
    expect(await hint(page, "Output tokens")).toEndWith("loading 30 d…");
    expect(await page.locator(".figures.old, table.stale").count()).toBe(2);
    expect(await csvButton(page, "Usage and cost").isDisabled()).toBe(true);
    held.resolve();
    await page.waitForFunction(() => document.querySelector(".chart.loading, table.stale") === null);
    expect(await texts()).not.toEqual(before);
    expect(await csvButton(page, "Usage and cost").isEnabled()).toBe(true);
  });

  test.each(["/", "/usage", "/gpus"])("%s shows neither zeros nor an axis", async (path) => {
    await using page = await console.visit("/keys");
    await page.route(/\/api\/(usage|requests|gpu-stats|overview|latency|failures)/, () => {});
    await page.goto(console.program.adminUrl + path);
    await page.locator(".chart-skeleton").first().waitFor();
    expect(await page.locator(".y-tick, .x-tick").count()).toBe(0);
    const text = (await page.locator("main").textContent()) ?? "";
    expect(text).not.toMatch(/\b0 (requests|rows|in|out|output tokens)\b|No requests|No output tokens|No power/);
  });

  test("a range that could not be loaded leaves the last good data, marked with its time", async () => {
    await using page = await console.visit("/usage", { expectedErrors: /status of 500/ });
    await waitForBars(page);
    const before = rangeOf(await hint(page, "Output tokens"));
    await page.route("**/api/usage/{chart,costs}*", (route) =>
      isLong(route) ? route.fulfill(refuse) : route.continue(),
    );
    await page.getByRole("radio", { name: "30 d" }).first().check();
    await page
      .getByRole("alert")
      .getByText(/could not be loaded: Internal error\. Showing data/)
      .waitFor();
    expect(await hint(page, "Output tokens")).toMatch(/ · loaded \d\d:\d\d KST$/);
    expect(rangeOf(await hint(page, "Output tokens"))).toBe(before);
    expect(await chartOf(page).locator("path.fill").count()).toBe(9);
    expect(await csvButton(page, "Usage and cost").isDisabled()).toBe(true);
  });

  test.each(["/", "/keys", "/keys/1", "/usage", "/gpus", "/requests", "/requests/running", "/settings"])(
    "%s names what failed and why, and shows no zeros",
    async (path) => {
      await using page = await console.visit("/nowhere", { expectedErrors: /status of 500/ });
      await page.route(/\/api\/(keys|usage|gpu-stats|overview|latency|failures|requests|in-flight|settings)/, (route) =>
        route.fulfill(refuse),
      );
      await page.goto(console.program.adminUrl + path);
      await page.getByRole("alert").getByText("could not be loaded: Internal error.").waitFor();
      await page.getByText("Could not be loaded", { exact: true }).first().waitFor();
      // Panels below the first view load later, and fail later.
      await page.waitForFunction(() => document.querySelector(".skeleton, .chart-skeleton, .y-tick") === null);
      expect(await page.locator(".figure .value").allTextContents()).not.toContain("0");
    },
  );

  test("a response of a proxy in between is reported in our words", async () => {
    await using page = await console.visit("/usage");
    await waitForBars(page);
    await page.route("**/api/usage/chart*", (route) =>
      route.fulfill({ status: 200, contentType: "text/html", body: "<h1>Maintenance</h1>" }),
    );
    await page.getByRole("button", { name: "Refresh" }).click();
    await page
      .getByRole("alert")
      .getByText("Output tokens could not be loaded: The response is not from Tollgate.")
      .waitFor();
  });

  test.each([["/settings", "New keys", "key-policy"]])(
    "on %s, panels whose script does not load say so, and come by themselves once it does",
    async (path, label, script) => {
      await using page = await console.visit("/nowhere", { expectedErrors: /ERR_FAILED/ });
      await page.route(`**/assets/${script}-*.js`, (route) => route.abort());
      await page.goto(console.program.adminUrl + path);
      await panel(page, label).getByText("This part of the console could not be loaded").waitFor();
      await panel(page, label).getByRole("button", { name: "Reload the page" }).waitFor();
      expect(await violations(page, `[aria-label="${label}"]`)).toEqual([]);
      await page.unroute(`**/assets/${script}-*.js`);
      await panel(page, label).getByRole("button", { name: "Reload the page" }).waitFor({ state: "detached" });
    },
  );
});
