import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ConsoleUnderTest, hasBrowser } from "./support/console-under-test.ts";
import { startSeededConsole } from "./support/seeded-console.ts";

describe.skipIf(!hasBrowser)("refresh", () => {
  let console: ConsoleUnderTest;
  beforeAll(async () => {
    console = await startSeededConsole();
  });
  afterAll(() => console[Symbol.asyncDispose]());

  test("a hidden tab sends no requests, and resumes when it becomes visible", async () => {
    await using visit = await console.visit("/gpus", { fakeClock: true });
    const { page } = visit;
    await page.getByRole("article", { name: "GPU 0, NVIDIA H200" }).waitFor();
    const setVisible = (visible: boolean): Promise<void> =>
      page.evaluate((isVisible) => {
        const state = isVisible ? "visible" : "hidden";
        Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
        Object.defineProperty(document, "hidden", { value: !isVisible, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, visible);
    await setVisible(false);
    const requested: string[] = [];
    page.on("request", (request) => requested.push(request.url()));
    await page.clock.runFor(120_000);
    expect(requested).toEqual([]);
    await setVisible(true);
    const resumed = page.waitForRequest("**/api/gpu-stats");
    await page.clock.runFor(10_000);
    await resumed;
  });

  test("times are in Seoul time, in full on hover", async () => {
    await using visit = await console.visit("/keys");
    const time = visit.page.getByRole("row").filter({ hasText: "alpha" }).locator(".key-used time");
    expect(await time.getAttribute("title")).toMatch(/^\d+ \w{3} \d{4}, \d\d:\d\d:\d\d KST$/);
    expect(await time.getAttribute("datetime")).toEndWith("+09:00");
  });

  test("the age of the data is correct although the local clock is minutes off", async () => {
    await using visit = await console.visit("/keys", { fakeClock: true });
    const { page } = visit;
    await page.getByText("Updated just now").waitFor();
    await page.clock.setSystemTime(Date.now() - 600_000);
    const refreshed = page.waitForResponse("**/api/keys");
    await page.getByRole("button", { name: "Refresh" }).click();
    await refreshed;
    await page.clock.runFor(2000);
    await page.getByText("Updated just now").waitFor();
    await page.clock.runFor(7000);
    await page.getByText(/^Updated \d s ago$/).waitFor();
  });
});
