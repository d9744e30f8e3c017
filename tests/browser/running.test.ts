import { describe, expect, test } from "bun:test";
import { violations } from "./support/axe.ts";
import { hasBrowser } from "./support/console-under-test.ts";
import { startTrafficConsole, waitForLog } from "./support/traffic-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("running now", () => {
  const traffic = shared(() => startTrafficConsole());

  test("an idle backend leads to the log", async () => {
    await using page = await traffic.console.visit("/requests/running", { expectedErrors: /ERR_INCOMPLETE/ });
    await page.getByText("The backend is idle").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("link", { name: "Open the log" }).click();
    await page.getByRole("heading", { name: "Requests", level: 1 }).waitFor();
  });

  test("a request ends after a question, and its client sees it break", async () => {
    await using page = await traffic.console.visit("/requests/running");
    const ended = traffic.chat({ stream: true }, "tokens=9; gap=60s@2").then(
      () => "ended",
      () => "broken",
    );
    const row = page.getByRole("row").filter({ hasText: "caller" });
    await row.getByText("Responding").waitFor();
    expect(await violations(page)).toEqual([]);

    await page.getByRole("button", { name: "End the request of caller" }).click();
    const dialog = page.getByRole("dialog", { name: "End the request of caller?" });
    // Enter must not end it.
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Cancel");
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    expect(await row.count()).toBe(1);

    await page.getByRole("button", { name: "End the request of caller" }).click();
    await dialog.getByRole("button", { name: "End request" }).click();
    await page.getByText("The request was ended").waitFor();
    await row.waitFor({ state: "detached" });
    await ended;
    await waitForLog(traffic, 1, "&outcome=ended_by_admin");
  });

  test("a request that waits shows its place, and one that has ended meanwhile is no error", async () => {
    await using page = await traffic.console.visit("/requests/running", { expectedErrors: /status of 404/ });
    await page.route("**/api/in-flight", (route) =>
      route.fulfill({
        json: {
          more: false,
          queue: { places: 8, used: 8, waiting: 12 },
          requests: [
            {
              id: "1-1",
              request_id: "r",
              key_id: null,
              key_name: null,
              address: "::1",
              method: "GET",
              path: "/v1/models",
              model: null,
              backend: null,
              state: "queued",
              priority: "normal",
              prefill_tokens: null,
              place: { position: 3, of: 12 },
              started_at: new Date().toISOString(),
              age_ms: 1,
              received_bytes: 0,
              output_tokens: null,
              heartbeats_ms: 7_260_000,
            },
          ].flatMap((one) => [one, { ...one, id: "1-2", state: "prefill", prefill_tokens: 60_000, place: null }]),
        },
      }),
    );
    await page.getByText("Waiting for its turn, 3 of 12").waitFor();
    await page.getByText("Waiting for prefill: 60,000 tokens").waitFor();
    await page.getByText("8 of 8 places, 12 waiting").waitFor();
    await page.getByText("Only heartbeats for 2 h").first().waitFor();
    await page.getByText("end the request, and restart the backend").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "End the request of a client without a key" }).first().click();
    await page.getByRole("button", { name: "End request" }).click();
    await page.getByText("The request had already ended").waitFor();
    await page.goto(`${traffic.console.program.adminUrl}/requests/running?by=key`);
    await page.getByRole("table").locator("[data-label=Waiting]").getByText("2", { exact: true }).waitFor();
  });

  test("fits the narrowest phone, which shows what a request waits for in full", async () => {
    await using page = await traffic.console.visit("/requests/running", { phone: true });
    await page.setViewportSize({ width: 320, height: 640 });
    const waiting = traffic.chat({ model: "a-name-that-is-longer-than-a-phone-is-wide" }, "slow-head=60s");
    const row = page.getByRole("row").filter({ hasText: "caller" });
    await row.getByText("Waiting for the backend").waitFor();
    const cells = await row.locator("td").evaluateAll((all) => all.map((cell) => cell.scrollWidth - cell.clientWidth));
    expect(cells.filter((beyond) => beyond > 0)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
    await page.getByRole("button", { name: "End the request of caller" }).click();
    await page.getByRole("button", { name: "End request" }).click();
    await waiting;
  });
});
