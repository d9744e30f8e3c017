import { beforeEach, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { hasBrowser, startConsole } from "./support/console-under-test.ts";
import { reading, seed, seedKeys } from "./support/seed.ts";
import { shared } from "../support/shared.ts";

const minuteMs = 60_000;
const secret = "a-key-for-samples-of-gpus";
const models = ["NVIDIA H100 80GB HBM3 of a long name SXM5", "NVIDIA H100 80GB HBM3 of a long name PCIe"];

/** Seven hosts of nine GPUs, the last with ten: 64. */
const hosts = Array.from({ length: 7 }, (_, host) => ({
  name: `gpu-0${host + 1}`,
  ids: Array.from({ length: host === 6 ? 10 : 9 }, (__, n) => host * 9 + n),
}));

describe.skipIf(!hasBrowser)("64 GPUs of seven hosts", () => {
  const console = shared(async () =>
    startConsole((dataDir) =>
      seed(dataDir, async (store) => {
        const [keyId = 0] = await seedKeys(store, ["trainer"], { secret: () => secret });
        const now = Date.now();
        for (let minute = 65; minute >= 5; minute--) {
          const recordedAt = now - minute * minuteMs;
          for (const { name, ids } of hosts) {
            const readings = ids.map((id) => reading(id, { name: models[id % 2] ?? "", powerDrawW: 500 }));
            await store.gpu.add({ keyId, recordedAt, host: name, readings });
          }
        }
      }),
    ),
  );

  // The last host has stopped. A GPU is stale after two minutes, and on a busy machine the tests take longer. A key may post
  // ten times in a second, so not before each test.
  let postedAt = 0;
  beforeEach(async () => {
    if (Date.now() - postedAt < minuteMs) return;
    postedAt = Date.now();
    for (const { name, ids } of hosts.slice(0, 6)) {
      const gpus = ids.map((id) => ({
        gpu_id: id,
        name: models[id % 2],
        power_draw_w: 500 + id,
        temp_c: id === 5 ? 91 : 55,
        memory_used_mb: id === 12 ? 143_000 : 70_000,
        memory_total_mb: 143_771,
        utilization_pct: id,
      }));
      const response = await fetch(`${console.program.adminUrl}/api/gpu-stats`, {
        method: "POST",
        headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
        body: JSON.stringify({ host: name, gpus }),
      });
      expect(response.status).toBe(200);
    }
  });

  const table = (page: Page) => page.getByRole("table", { name: "GPUs" });
  const idsIn = async (page: Page) =>
    (await table(page).locator("tbody th a").allTextContents()).map((text) => Number(text));

  test("the power of all GPUs adds up the hosts: 32 kW, not the 5 kW of one POST", async () => {
    await using page = await console.visit("/gpus");
    const panel = page.getByRole("region", { name: "Energy and tokens" });
    await panel.getByText(/^Highest mean 32 kW/).waitFor({ state: "attached" });
    // 61 minutes, and one of the hosts that still run.
    await panel.getByText("33 kWh", { exact: true }).waitFor();
    await page.getByText("54 of 64 GPUs reporting").waitFor();
  });

  test("they are rows of a table, silent and hot ones first, and every value stays on one line", async () => {
    await using page = await console.visit("/gpus");
    await table(page).getByText("gpu-01").first().waitFor();
    const silent = Array.from({ length: 10 }, (_, n) => 54 + n);
    const others = Array.from({ length: 54 }, (_, id) => id).filter((id) => id !== 5);
    expect(await idsIn(page)).toEqual([...silent, 5, ...others]);
    for (const width of [1280, 1024, 390]) {
      await page.setViewportSize({ width, height: 900 });
      const wrapped = await table(page)
        .locator("tbody :is(td.number, th[scope=row])")
        .evaluateAll((cells) => cells.filter((cell) => cell.getBoundingClientRect().height > 36).length);
      expect(wrapped).toBe(0);
      expect(await table(page).evaluate((one) => one.scrollWidth - (one.parentElement?.clientWidth ?? 0))).toBe(0);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    }
  });

  test("names without enough space keep the end, which tells models apart", async () => {
    await using page = await console.visit("/gpus");
    await page.setViewportSize({ width: 1025, height: 900 });
    const name = table(page).locator(".gpu-name").first();
    await name.waitFor();
    const parts = await name.evaluate((element) =>
      [...element.children].map((part) => ({ text: part.textContent, isCut: part.scrollWidth > part.clientWidth })),
    );
    expect(parts).toEqual([
      { text: "H100 80GB HBM3 of a long", isCut: true },
      { text: " name SXM5", isCut: false },
    ]);
  });

  test("a click on a column sorts all of them, and the URL keeps it", async () => {
    await using page = await console.visit("/gpus");
    await table(page).getByRole("button", { name: "Temperature" }).click();
    expect((await idsIn(page))[0]).toBe(5);
    await page.getByRole("columnheader", { name: "Host" }).waitFor();
    await page.goto(`${console.program.adminUrl}/gpus?sort=-power`);
    await table(page).locator("tbody th a").first().waitFor();
    expect((await idsIn(page)).slice(0, 3)).toEqual([53, 52, 51]);
  });

  test("a GPU has a page with its latest values and its history", async () => {
    await using page = await console.visit("/gpus");
    await table(page).getByRole("link", { name: "12", exact: true }).click();
    await page.getByRole("heading", { name: "GPU 12", level: 1 }).waitFor();
    await page.getByText("NVIDIA H100 80GB HBM3 of a long name SXM5 on gpu-02").waitFor();
    await page.locator(".figure", { hasText: "Power" }).getByText("512 W", { exact: true }).waitFor();
    for (const [measure, highest] of [
      ["Power", "512 W"],
      ["Utilisation", "40%"],
      ["Memory", "139.6 GiB"],
      ["Temperature", "55 °C"],
    ]) {
      const chart = page.getByRole("group", { name: `${measure} over time` });
      await chart.locator("path.line").waitFor({ state: "attached" });
      await chart.getByText(new RegExp(`^Highest ${highest},`)).waitFor({ state: "attached" });
    }
    await page.getByRole("radio", { name: "7 d" }).check();
    await page.getByText(/2-hour means$/).waitFor();
    await page.getByRole("link", { name: "All GPUs" }).click();
    await page.getByRole("heading", { name: "GPUs", level: 1 }).waitFor();
  });

  test.each(["200", "x", "-1", "1e2"])("the page of the unknown GPU %s says that it has not reported", async (id) => {
    await using page = await console.visit(`/gpus/${id}`);
    await page.getByText("This GPU has not reported in the last seven days").waitFor();
  });
});
