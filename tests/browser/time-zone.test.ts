import { describe, expect, test } from "bun:test";
import { chooseFrom, openAccountMenu } from "./support/menus.ts";
import { hasBrowser } from "./support/console-under-test.ts";
import { chartOf, startUsageConsole, waitForBars } from "./support/usage-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("time zones", () => {
  const console = shared(startUsageConsole);

  test("ranges, tooltips and today name Seoul's zone, whatever the browser's", async () => {
    await using page = await console.visit("/usage?range=6h", { timeZone: "America/New_York" });
    await waitForBars(page);
    const hint = page.getByRole("region", { name: "Output tokens" }).locator(".hint");
    expect(await hint.textContent()).toMatch(/\d\d:\d\d KST · /);
    await chartOf(page).focus();
    await page.keyboard.press("End");
    expect(await chartOf(page).locator(".tooltip-time").textContent()).toMatch(/ KST$/);
  });

  test("the times of requests, and the fields for them, name their zone", async () => {
    await using page = await console.visit("/requests", { expectedErrors: /ERR_INCOMPLETE/ });
    await page.route(/\/api\/requests\?/, async (route) => {
      const response = await route.fetch();
      const request = { id: 1, request_id: "a", ended_at: "2026-01-01T00:00:00.000+09:00", outcome: "completed" };
      const shown = { ...request, status: 200, path: "/v1/models", method: "GET", duration_ms: 1, changes: [] };
      await route.fulfill({ response, json: { ...((await response.json()) as object), requests: [shown] } });
    });
    await page.reload();
    await page.getByRole("columnheader", { name: "Ended (KST)" }).waitFor();
    await openAccountMenu(page);
    await page.getByLabel("Time zone").selectOption("utc");
    await page.keyboard.press("Escape");
    await page.getByRole("columnheader", { name: "Ended (UTC)" }).waitFor();
    await chooseFrom(page, "Add a filter", "Ended from");
    await page.getByLabel("Ended from (UTC)").waitFor();
  });

  test("the chosen zone applies everywhere, outlives a reload, and follows in other tabs", async () => {
    await using page = await console.visit("/usage?range=6h", { timeZone: "America/New_York" });
    const context = page.context();
    await waitForBars(page);
    const hint = page.getByRole("region", { name: "Output tokens" }).locator(".hint");
    const zone = page.getByLabel("Time zone");
    await openAccountMenu(page);
    await zone.selectOption("utc");
    expect(await hint.textContent()).toMatch(/\d\d:\d\d UTC · /);
    await zone.selectOption("local");
    expect(await hint.textContent()).toMatch(/\d\d:\d\d (EST|EDT|GMT-[45]) · /);
    const local = (await hint.textContent()) ?? "";
    await page.reload();
    await waitForBars(page);
    expect(await hint.textContent()).toContain(local.match(/(EST|EDT|GMT-[45])/)?.[0] ?? "no zone");

    const other = await context.newPage();
    await other.goto(`${console.program.adminUrl}/keys`);
    await openAccountMenu(other);
    await other.getByLabel("Time zone").selectOption("utc");
    await hint.getByText("UTC").waitFor();
    await openAccountMenu(page);
    expect(await zone.inputValue()).toBe("utc");
  });
});
