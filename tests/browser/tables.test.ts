import { beforeAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { shared } from "../support/shared.ts";
import { hasBrowser } from "./support/console-under-test.ts";
import { longName, waitUntilDrawn, waitUntilLoaded } from "./support/seeded-console.ts";
import { startTrafficConsole, waitForLog } from "./support/traffic-console.ts";

describe.skipIf(!hasBrowser)("tables of a house with teams and users", () => {
  const traffic = shared(() => startTrafficConsole({}, longName.slice(0, 60)));
  beforeAll(async () => {
    const { admin } = traffic.console;
    const team = await admin.expectOk<{ id: number }>("POST", "/api/teams", { name: longName.slice(0, 50) });
    await admin.updateKey(traffic.key.id, { team_id: team.id, users_from: "body" });
    await traffic.chat({ user: "kim@example.com" });
    await traffic.chat({ user: "kim@example.com" }, "status=500");
    await waitForLog(traffic, 2);
  });

  /** What a reader cannot see although nothing tells so: beside a table, or outside of the window. */
  const unseen = (page: Page): Promise<string[]> =>
    page.evaluate(() => [
      ...[...document.querySelectorAll(".table-scroll")]
        .filter((one) => one.scrollWidth > one.clientWidth)
        .map((one) => `${one.scrollWidth} > ${one.clientWidth}`),
      ...[...document.querySelectorAll<HTMLElement>("main :is(tr > :last-child, tr > :first-child, .row-actions)")]
        .filter((one) => one.offsetParent === null || one.getBoundingClientRect().right > innerWidth)
        .map((one) => one.textContent ?? ""),
    ]);

  test.each(["/requests", "/requests/running", "/keys", "/keys/teams"])(
    "%s shows its first and last columns and its actions in any window",
    async (path) => {
      const running = traffic.chat({ stream: true, user: "kim@example.com" }, "tokens=9; gap=60s@2");
      await using page = await traffic.console.visit(path);
      await page.locator("tbody tr").first().waitFor();
      for (const width of [768, 820, 1024, 1180, 1279, 1280, 1440, 1600]) {
        await page.setViewportSize({ width, height: 900 });
        await waitUntilLoaded(page);
        await waitUntilDrawn(page);
        expect([width, await unseen(page)]).toEqual([width, []]);
      }
      if (path === "/requests/running") {
        await page.setViewportSize({ width: 820, height: 900 });
        await page
          .getByRole("button", { name: /^End the request of/ })
          .first()
          .click({ trial: true });
      }
      const { admin } = traffic.console;
      for (const { id } of await admin.listRunning()) await admin.endRunning(id);
      await running.catch(() => {});
    },
  );

  test("a request takes at most 72 pixels of a phone", async () => {
    await using page = await traffic.console.visit("/requests", { phone: true });
    const row = page.locator("tbody tr[data-row]").first();
    await row.waitFor();
    expect(await row.evaluate((one) => one.getBoundingClientRect().height)).toBeLessThanOrEqual(72);
    for (const label of ["Result", "Key", "Model", "Output", "Duration"]) {
      expect([label, await row.locator(`[data-label="${label}"]`).isVisible()]).toEqual([label, true]);
    }
  });

  test("a holder of a key sees all of the last requests in any window", async () => {
    await using page = await traffic.console.visit("/me", { anonymous: true });
    await page.getByLabel("API key", { exact: true }).fill(traffic.key.key);
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByRole("region", { name: "Last requests" }).locator("tbody tr").first().waitFor();
    for (const width of [768, 1024, 1280, 1600]) {
      await page.setViewportSize({ width, height: 900 });
      await waitUntilDrawn(page);
      expect([width, await unseen(page)]).toEqual([width, []]);
    }
  });
});
