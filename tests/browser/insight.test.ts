import { beforeAll, describe, expect, test } from "bun:test";
import { violations } from "./support/axe.ts";
import { hasBrowser } from "./support/console-under-test.ts";
import { startTrafficConsole, trafficModel, waitForLog, waitForSums } from "./support/traffic-console.ts";
import { csvOf } from "./support/usage-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("failures, latency, models and cost", () => {
  const traffic = shared(() => startTrafficConsole());
  beforeAll(async () => {
    await traffic.chat();
    // The simulator reports usage of a stream only on request, like vLLM.
    await traffic.chat({ stream: true });
    await traffic.chat({}, "status=500");
    await waitForLog(traffic, 3);
    await waitForSums(traffic, 3);
  });

  test("latency and failures have a page beside the log", async () => {
    await using page = await traffic.console.visit("/requests");
    await page.getByRole("link", { name: "Latency and failures" }).click();
    const failures = page.getByRole("region", { name: "Failures" });
    await failures.getByText("1 of 3 requests (33.3%) · 15-minute bars").waitFor();
    await failures.getByRole("listitem").filter({ hasText: "Error response of the backend 1" }).waitFor();
    await failures.locator("path.fill").first().waitFor();
    const latency = page.getByRole("region", { name: "Latency" });
    await latency.getByRole("listitem").filter({ hasText: "95% within" }).waitFor();
    await latency.locator("path.fill").first().waitFor();
    await latency.getByRole("radio", { name: "Duration" }).check();
    await latency.getByText("Last 24 hours, whole requests · 15-minute bars").waitFor();
    // On a narrow screen a bar is more.
    await page.setViewportSize({ width: 320, height: 640 });
    await failures.getByText("30-minute bars").waitFor();
    await page.setViewportSize({ width: 1280, height: 800 });
    // The last two panels.
    expect(await violations(page, "main > section:nth-last-of-type(-n + 2)")).toEqual([]);
    await failures.getByRole("link", { name: /caller/ }).click();
    await page.getByRole("dialog").getByText("Timeline").waitFor();
  });

  test("a stream that reported no usage is found by its result, and counted in /metrics", async () => {
    await using page = await traffic.console.visit("/requests");
    const rows = page.locator("tbody tr");
    await rows.nth(2).waitFor();
    await page.getByLabel("Result").selectOption("2xx without usage");
    await rows.nth(1).waitFor({ state: "detached" });
    await rows.getByText("200").waitFor();
    const metrics = await (await traffic.console.admin.request("GET", "/metrics")).text();
    expect(metrics).toContain("\ntollgate_responses_without_tokens_total 1\n");
  });

  test("clients that left are told apart from failures", async () => {
    await using page = await traffic.console.visit("/keys/1");
    await page.route("**/api/failures*", async (route) => {
      const response = await route.fetch();
      const body = (await response.json()) as { points: object[] };
      const outcomes = { completed: 90, client_left: 7, timed_out: 3 };
      body.points = [{ ...body.points[0], request_count: 100, failed_count: 3, outcomes }];
      await route.fulfill({ response, json: body });
    });
    await page.reload();
    const failures = page.getByRole("region", { name: "Failures" });
    await failures.getByText("3 of 100 requests (3.0%) · in 7 more the client left · 15-minute bars").waitFor();
    expect(await failures.locator(".chart-legend li").allTextContents()).toEqual(["Timed out 3"]);
  });

  test("the last failures are found although the server's search ends before it has reached them", async () => {
    await using page = await traffic.console.visit("/keys/1");
    // The first page of a search that took its time.
    await page.route("**/api/requests?failed=true*", async (route) => {
      const url = new URL(route.request().url());
      if (url.searchParams.has("cursor")) {
        url.searchParams.delete("cursor");
        await route.continue({ url: url.href });
        return;
      }
      const response = await route.fetch();
      const body = (await response.json()) as object;
      await route.fulfill({ response, json: { ...body, requests: [], next_cursor: "1.1" } });
    });
    await page.reload();
    const failures = page.getByRole("region", { name: "Failures" });
    await failures.getByRole("link", { name: /caller/ }).waitFor();
  });

  test("usage is listed by model, key, both and day, and in the CSV", async () => {
    await using page = await traffic.console.visit("/usage");
    const panel = page.getByRole("region", { name: "Usage and cost" });
    await panel.getByRole("button", { name: "caller" }).waitFor();
    expect(await panel.getByRole("columnheader", { name: "Cost" }).count()).toBe(0);
    await panel.getByRole("radio", { name: "Key and model" }).check();
    await page.waitForURL("**/usage?by=key_model");
    await panel.getByRole("cell", { name: trafficModel }).waitFor();
    await panel.getByRole("radio", { name: "Day", exact: true }).check();
    await panel.getByRole("rowheader", { name: /^\d{4}-\d\d-\d\d$/ }).waitFor();
    const [header, line] = await csvOf(page, "Usage and cost");
    expect(header?.slice(0, 3)).toEqual(["date", "request_count", "prompt_tokens"]);
    expect(line?.[1]).toBe("2");
  });

  test("prices can be entered, turn tokens into costs, and refuse what is no currency", async () => {
    await using page = await traffic.console.visit("/settings/prices");
    await page.getByRole("button", { name: "Add a model price" }).click();
    await page.getByRole("textbox", { name: "Model" }).fill("traffic-*");
    await page.getByLabel("Valid from").fill("2020-01-01");
    await page.getByLabel("Input", { exact: true }).fill("1000000");
    await page.getByLabel("Output").fill("0");
    const save = page.getByRole("button", { name: "Save prices" });
    await page.getByLabel("Currency").fill("€");
    await save.click();
    expect(await page.getByLabel("Currency").evaluate((field: HTMLInputElement) => field.validity.valid)).toBe(false);
    await page.getByLabel("Currency").fill("eur");
    expect(await violations(page)).toEqual([]);
    await save.click();
    await page.getByText("The prices were saved").waitFor();
    await page.reload();
    expect(await page.getByLabel("Currency").inputValue()).toBe("EUR");

    const rows = await traffic.console.admin.expectOk<{ rows: { input_tokens: number }[] }>("GET", "/api/usage/costs");
    const euros = rows.rows[0]?.input_tokens ?? Number.NaN;
    await page.goto(`${traffic.console.program.adminUrl}/usage`);
    const cost = page.getByRole("region", { name: "Usage and cost" }).locator("tbody td[data-label=Cost]");
    await cost.getByText(`€${euros.toLocaleString("en-US", { minimumFractionDigits: 2 })}`).waitFor();
    const [header, line] = await csvOf(page, "Usage and cost");
    expect(header?.slice(-2)).toEqual(["cost", "cost_is_partial"]);
    expect(line?.slice(-2)).toEqual([String(euros), "false"]);

    await page.goto(`${traffic.console.program.adminUrl}/settings/prices`);
    await page.getByRole("button", { name: "Remove price 1" }).click();
    await page.getByText("Without prices, the console shows tokens only.").waitFor();
  });

  test("a form with changed prices is not left without a question", async () => {
    await using page = await traffic.console.visit("/settings/prices");
    const account = page.getByRole("link", { name: "Account" });
    await page.getByRole("button", { name: "Add an energy price" }).click();
    await account.click();
    const question = page.getByRole("dialog", { name: "Leave without saving the prices?" });
    expect(await violations(page)).toEqual([]);
    await question.getByRole("button", { name: "Stay" }).click();
    await question.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Remove energy price 1" }).click();
    // Nothing is left to lose.
    await account.click();
    await page.getByRole("heading", { name: "Account", level: 1 }).waitFor();
    await page.goBack();
    await page.getByRole("button", { name: "Add an energy price" }).click();
    const asked = page.waitForEvent("dialog");
    const reloaded = page.reload().catch(() => {});
    await (await asked).dismiss();
    await reloaded;
    await account.click();
    await question.getByRole("button", { name: "Leave" }).click();
    await page.getByRole("heading", { name: "Account", level: 1 }).waitFor();
  });

  test("the backend's own counters appear once a day drifts from the counts", async () => {
    await using page = await traffic.console.visit("/settings/backends");
    await page.getByRole("region", { name: "Backends" }).waitFor();
    const panel = page.getByRole("region", { name: "Compared with the backend" });
    expect(await panel.count()).toBe(0);
    const day = { generated_tokens: 1000, counted_output_tokens: 900, difference: 100, prompt_tokens: 70_000 };
    const rows = [
      { ...day, date: "2026-11-21", counted_input_tokens: 7000, prompt_difference: 63_000, is_drifting: true },
      { ...day, date: "2026-11-20", counted_input_tokens: 70_000, prompt_difference: 0, is_drifting: false },
    ];
    await page.route("**/api/reconciliation*", (route) =>
      route.fulfill({ json: { days: 30, source: "vllm", checked_at: new Date().toISOString(), rows } }),
    );
    await page.reload();
    await panel.getByText("Token counters of vLLM").waitFor();
    expect(await panel.getByText("Drifting").count()).toBe(1);
    expect(await panel.getByText("In line").count()).toBe(1);
    // As on a screen of 1280 at four times its size.
    await page.setViewportSize({ width: 320, height: 640 });
    const cells = panel.locator("td");
    expect(await cells.evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).length)).toBe(0);
  });

  test("a refused price keeps what was typed", async () => {
    await using page = await traffic.console.visit("/settings/prices", { expectedErrors: /status of 400/ });
    await page.getByRole("button", { name: "Add an energy price" }).click();
    await page.getByLabel("Per kWh").fill("0.3");
    await page.getByLabel("Currency").fill("EUR");
    await page.route("**/api/prices", (route) =>
      route.request().method() === "GET"
        ? route.continue()
        : route.fulfill({ status: 400, json: { error: "energy.0.per_kwh is invalid" } }),
    );
    await page.getByRole("button", { name: "Save prices" }).click();
    await page.getByRole("alert").getByText("energy.0.per_kwh is invalid.").waitFor();
    expect(await page.getByLabel("Per kWh").inputValue()).toBe("0.3");
  });

  test("prices that changed elsewhere are in the form when it opens again", async () => {
    const pricesOf = (perKwh: number) => ({
      currency: "EUR",
      models: [],
      energy: [{ valid_from: "2020-01-01", per_kwh: perKwh }],
    });
    const { admin } = traffic.console;
    await admin.expectOk("PUT", "/api/prices", pricesOf(0.25));
    await using page = await traffic.console.visit("/settings/prices", { expectedErrors: /status of 503/ });
    const perKwh = page.getByLabel("Per kWh");
    const tabs = page.getByRole("navigation", { name: "Settings" });
    await perKwh.waitFor();
    expect(await perKwh.inputValue()).toBe("0.25");
    await tabs.getByRole("link", { name: "Server" }).click();
    await page.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
    await admin.expectOk("PUT", "/api/prices", pricesOf(0.5));
    await tabs.getByRole("link", { name: "Prices" }).click();
    await perKwh.waitFor();
    expect(await perKwh.inputValue()).toBe("0.5");

    await tabs.getByRole("link", { name: "Server" }).click();
    await page.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
    await page.route("**/api/prices", (route) => route.fulfill({ status: 503, json: { error: "The disk is full" } }));
    await tabs.getByRole("link", { name: "Prices" }).click();
    const panel = page.getByRole("region", { name: "Prices" });
    await panel.getByText("The disk is full").waitFor();
    await page.unroute("**/api/prices");
    await panel.getByRole("button", { name: "Try again" }).click();
    await perKwh.waitFor();
  });
});
