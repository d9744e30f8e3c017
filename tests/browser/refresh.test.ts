import { describe, expect, test } from "bun:test";
import { hasBrowser, setVisible } from "./support/console-under-test.ts";
import { startSeededConsole } from "./support/seeded-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("refresh", () => {
  const console = shared(() => startSeededConsole());

  test("a hidden tab sends no requests, and resumes when it becomes visible", async () => {
    await using page = await console.visit("/gpus", { fakeClock: true });
    await page.getByRole("row").filter({ hasText: "H200" }).first().waitFor();
    await setVisible(page, false);
    const requested: string[] = [];
    page.on("request", (request) => requested.push(request.url()));
    await page.clock.runFor(120_000);
    expect(requested).toEqual([]);
    await setVisible(page, true);
    const resumed = page.waitForRequest("**/api/gpu-stats");
    await page.clock.runFor(10_000);
    await resumed;
  });

  test("times are in Seoul time, in full on hover", async () => {
    await using page = await console.visit("/keys");
    const time = page.getByRole("row").filter({ hasText: "alpha" }).locator(".key-used time");
    expect(await time.getAttribute("title")).toMatch(/^\d+ \w{3} \d{4}, \d\d:\d\d:\d\d KST$/);
    expect(await time.getAttribute("datetime")).toEndWith("+09:00");
  });

  test("the age of the data is correct although the local clock is minutes off", async () => {
    await using page = await console.visit("/keys", { fakeClock: true });
    await page.getByText("Updated just now").waitFor();
    await page.clock.setSystemTime(Date.now() - 600_000);
    const refreshed = page.waitForResponse("**/api/keys*");
    await page.getByRole("button", { name: "Refresh" }).click();
    await refreshed;
    await page.clock.runFor(2000);
    await page.getByText("Updated just now").waitFor();
    await page.clock.runFor(7000);
    await page.getByText(/^Updated \d s ago$/).waitFor();
  });

  test("Refresh refreshes every panel", async () => {
    await using page = await console.visit("/requests/latency");
    await page
      .getByRole("region", { name: "Failures" })
      .getByText(/^Last 24 hours/)
      .waitFor();
    // What is still under way is not asked again.
    await page.waitForLoadState("networkidle");
    const paths = ["states", "latency", "failures", "requests"];
    const asked = paths.map((path) => page.waitForRequest((request) => request.url().includes(`/api/${path}`)));
    await page.getByRole("button", { name: "Refresh" }).click();
    await Promise.all(asked);
  });

  test("the age is that of the oldest panel, which says why and can be tried again", async () => {
    await using page = await console.visit("/requests/latency", { fakeClock: true, expectedErrors: /503/ });
    const failures = page.getByRole("region", { name: "Failures" });
    await failures.getByText(/^Last 24 hours ·/).waitFor();
    await page.getByText("Updated just now").waitFor();
    const refuse = { status: 503, json: { error: "Storage does not respond" } };
    await page.route("**/api/failures?*", (route) => route.fulfill(refuse));
    await page.clock.runFor(31_000);
    const failure = failures
      .getByRole("status")
      .filter({ hasText: "Could not be refreshed: Storage does not respond" });
    // On a busy machine the refusal comes after that time, and what waits for the clock then goes on with it.
    for (let seconds = 0; seconds < 60 && !(await failure.isVisible()); seconds++) {
      await page.waitForTimeout(250);
      await page.clock.runFor(1000);
    }
    await failure.waitFor();
    await page.clock.runFor(10_000);
    await page.getByText(/^Updated (?:[4-9]\d s|\d+ min) ago$/).waitFor();
    await page.unroute("**/api/failures?*");
    await failure.getByRole("button", { name: "Try again" }).click();
    await failure.waitFor({ state: "detached" });
  });

  test("a panel that was never loaded can be tried again", async () => {
    await using page = await console.visit("/requests/latency", { expectedErrors: /503/ });
    const refuse = { status: 503, json: { error: "Storage does not respond" } };
    await page.route("**/api/failures?*", (route) => route.fulfill(refuse));
    await page.reload();
    const failures = page.getByRole("region", { name: "Failures" });
    const again = failures.getByRole("button", { name: "Try again" });
    await again.waitFor();
    await page.unroute("**/api/failures?*");
    await again.click();
    await again.waitFor({ state: "detached" });
  });
});
