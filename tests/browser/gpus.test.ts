import { beforeAll, describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { hasBrowser, startConsole } from "./support/console-under-test.ts";
import { reading, seed, seedKeys, usage } from "./support/seed.ts";
import { shared } from "../support/shared.ts";

interface Power {
  points: { energy_wh: number }[];
}

const minuteMs = 60_000;
const hour = (minute: number): number => Math.floor(minute / 60) * 60;

describe.skipIf(!hasBrowser)("GPUs", () => {
  let key: string;
  const console = shared(async () =>
    startConsole((dataDir) =>
      seed(dataDir, async (store) => {
        const [keyId = 0] = await seedKeys(store, ["trainer"]);
        const now = Math.floor(Date.now() / minuteMs);
        // Two hours of power and tokens that ended an hour ago or more, so both GPUs are stale.
        for (let minute = hour(now) - 180; minute < hour(now) - 60; minute++) {
          const recordedAt = minute * minuteMs + 1000;
          await store.gpu.add({ keyId, recordedAt, readings: [reading(8), reading(9, { powerDrawW: 600 })] });
        }
        const minutes = Array.from({ length: 120 }, (_, index) => hour(now) - 180 + index);
        await store.usage.add(minutes.map((minute) => usage(keyId, minute, [1, 100, 500])));
      }),
    ),
  );
  beforeAll(async () => {
    key = (await console.admin.createKey("pusher")).key;
  });

  const push = async (gpus: unknown[], host?: string): Promise<void> => {
    const response = await fetch(`${console.program.adminUrl}/api/gpu-stats`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ host, gpus }),
    });
    expect(response.status).toBe(200);
  };
  const rowOf = (page: Page, id: number): Locator =>
    page.getByRole("row").filter({ has: page.getByRole("link", { name: String(id), exact: true }) });
  const gpu = (id: number) => ({
    gpu_id: id,
    name: "NVIDIA H200",
    power_draw_w: 412,
    temp_c: 61,
    memory_used_mb: 71_885,
    memory_total_mb: 143_771,
    utilization_pct: 87,
  });

  test("energy and tokens cover the same time, and the energy is no bound", async () => {
    await using visit = await console.visit("/gpus");
    const { page } = visit;
    const panel = page.getByRole("region", { name: "Energy and tokens" });
    await panel.locator("path.line").waitFor({ state: "attached" });
    const { points } = await console.admin.expectOk<Power>("GET", "/api/gpu-stats/history?days=1&bucket_minutes=1");
    expect(points.reduce((sum, point) => sum + point.energy_wh, 0)).toBe(1800);
    // 1,800 Wh over 60,000 output tokens.
    await panel.getByText("1.8 kWh", { exact: true }).waitFor();
    await panel.getByText("30", { exact: true }).waitFor();
    await panel.getByText("60K", { exact: true }).waitFor();
    const cost = panel.locator("dl > div").filter({ hasText: "Cost of energy" });
    await cost.getByText("–").waitFor();
    await cost.getByRole("link", { name: "Enter a price per kWh" }).waitFor();
    const prices = { currency: "EUR", models: [], energy: [{ valid_from: "2020-01-01", per_kwh: 0.5 }] };
    await page.route("**/api/prices", (route) => route.fulfill({ json: prices }));
    await page.reload();
    await cost.getByText("€0.90").waitFor();
    await panel.getByText(/Energy is the mean power of each GPU in each minute, added up/).waitFor();
    expect(await panel.getByText(/bound|at most/i).count()).toBe(0);
  });

  test("a GPU that stopped reporting is marked stale and excluded from the sums", async () => {
    await push([gpu(0)]);
    await using visit = await console.visit("/gpus");
    const { page } = visit;
    await rowOf(page, 9)
      .getByText(/^Stale · \d+ h ago$/)
      .waitFor();
    expect(await rowOf(page, 9).getAttribute("class")).toBe("stale");
    await page.getByText("1 of 3 GPUs reporting").waitFor();
    await page.locator(".figure", { hasText: "Power now" }).getByText("412 W", { exact: true }).waitFor();
  });

  test("a GPU whose samples cannot be loaded says so in place of its history, which loads once they can", async () => {
    await push([gpu(0)]);
    await using visit = await console.visit("/nowhere", { expectedErrors: /status of 500/ });
    const { page } = visit;
    await page.route("**/api/gpu-stats", (route) =>
      route.fulfill({ status: 500, json: { ok: false, error: "Internal error" } }),
    );
    await page.goto(`${console.program.adminUrl}/gpus/0`);
    const history = page.getByRole("region", { name: "History" });
    await history.getByText("Could not be loaded").waitFor();
    expect(await page.getByText("Loading…").count()).toBe(0);
    await page.unroute("**/api/gpu-stats");
    await history.getByRole("button", { name: "Try again" }).click();
    await history.getByText("Utilisation").waitFor();
  });

  test("while the server does not answer, no figure or row looks current, and none blames its host", async () => {
    await push([gpu(0)]);
    for (const path of ["/gpus", "/gpus/0"]) {
      await using visit = await console.visit(path, { fakeClock: true, expectedErrors: /ERR_|status of 502/ });
      const { page } = visit;
      const figures = page.locator("dl.figures");
      await figures.getByText("412 W", { exact: true }).waitFor();
      const age = figures.getByText(/^\d+ (s|min) ago$/);
      expect(await age.count()).toBe(0);
      await page.route("**/api/gpu-stats", (route) => route.fulfill({ status: 502, body: "" }));
      await page.clock.runFor(5000);
      await age.first().waitFor();
      expect(await figures.locator("dt").allTextContents()).not.toContain("Power now");
      // Longer than a host may be silent.
      await page.clock.runFor(240_000);
      await figures
        .getByText(/^4 min ago$/)
        .first()
        .waitFor();
      await figures.getByText("412 W", { exact: true }).waitFor();
      expect(await page.getByText(/^Stale · [0-5] min ago/).count()).toBe(0);
      if (path === "/gpus") {
        expect(await rowOf(page, 0).getAttribute("class")).toBe("stale");
      }
      await page.unroute("**/api/gpu-stats");
      await page.clock.runFor(20_000);
      await age.first().waitFor({ state: "detached" });
    }
  });

  test("a row shows utilisation, memory, power and temperature, and updates with the next sample", async () => {
    await push([gpu(0)]);
    await using visit = await console.visit("/gpus");
    const row = rowOf(visit.page, 0);
    for (const text of ["87%", "50%", "412 W", "61 °C"]) await row.getByText(text, { exact: true }).waitFor();
    expect(await row.getByTitle("70.2 of 140.4 GiB").count()).toBe(1);
    await push([{ ...gpu(0), utilization_pct: 12 }]);
    await row.getByText("12%", { exact: true }).waitFor();
  });

  test("a value that a GPU does not report is a dash, not a zero", async () => {
    await push([{ gpu_id: 3, name: "reports nothing" }]);
    await using visit = await console.visit("/gpus");
    const row = visit.page.getByRole("row").filter({ hasText: "reports nothing" });
    await row.waitFor();
    expect(await row.locator("td.number").allTextContents()).toEqual(["–", "–", "–", "–"]);
  });

  test("a full or hot GPU says so in its row, in colour and in words", async () => {
    await push([{ ...gpu(0), temp_c: 91, memory_used_mb: 143_000 }]);
    await using visit = await console.visit("/gpus");
    const card = rowOf(visit.page, 0);
    await card.getByText("Hot", { exact: true }).waitFor();
    await card.getByText("Full", { exact: true }).waitFor();
    const colourOf = (text: string) =>
      card.getByText(text, { exact: true }).evaluate((element) => getComputedStyle(element).color);
    expect(await colourOf("91 °C")).not.toBe(await colourOf("412 W"));
    await push([gpu(0)]);
    await card.getByText("61 °C", { exact: true }).waitFor();
    expect(await card.getByText(/Hot|Full/).count()).toBe(0);
  });

  test("the dialog for a new host shows commands with a key file and a free offset", async () => {
    await using visit = await console.visit("/gpus");
    const { page } = visit;
    await page.getByRole("button", { name: "Add a GPU host" }).click();
    const dialog = page.getByRole("dialog", { name: "Add a GPU host" });
    const url = console.program.adminUrl;
    // The ids up to 9 are taken.
    const options = "--key-file /etc/tollgate-gpu.key --gpu-id-offset 16";
    await dialog.getByText(`tollgate push-gpu --url ${url} ${options}`).waitFor();
    await dialog.getByRole("button", { name: "Copy the agent command" }).click();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(`tollgate push-gpu --url ${url} ${options}`);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  test("two hosts that send the same ids are named on the page and in the dialog", async () => {
    await using visit = await console.visit("/gpus");
    const { page } = visit;
    for (const host of ["left", "right", "left"]) await push([gpu(0), gpu(3)], host);
    const text = "left and right send the same 2 GPU ids: 0, 3.";
    await page.getByRole("status").getByText(text).waitFor();
    await page.getByRole("button", { name: "Add a GPU host" }).click();
    await page.getByRole("dialog").getByText(text).waitFor();
  });
});
