import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { pollUntil } from "../support/poll-until.ts";
import { type ConsoleUnderTest, hasBrowser, startConsole } from "./support/console-under-test.ts";
import { seed, seedKeys, usage } from "./support/seed.ts";
import { csvOf, sumOfColumn } from "./support/usage-console.ts";

describe.skipIf(!hasBrowser)("the cost of a year with 30 models", () => {
  let console: ConsoleUnderTest;
  const days = 365;
  const models = 30;
  beforeAll(async () => {
    console = await startConsole((dataDir) =>
      seed(dataDir, async (store) => {
        const [id = 0] = await seedKeys(store, ["caller"]);
        const today = Math.floor(Date.now() / 60_000);
        for (let ago = 0; ago < days; ago += 1) {
          await store.usage.add(
            Array.from({ length: models }, (_, model) => ({
              ...usage(id, today - ago * 1440, [1, 1_000_000, 0]),
              model: `model ${model}`,
            })),
          );
        }
        const list = [{ pattern: "*", valid_from: "2020-01-01", input: 1, cached_input: null, output: 1 }];
        await store.settings.set("prices", JSON.stringify({ currency: "USD", models: list, energy: [] }));
      }),
    );
  });
  afterAll(() => console[Symbol.asyncDispose]());

  test("is the same in both panels, in their CSV, and in the API, and other pages have it too", async () => {
    const dollars = days * models;
    const label = `$${dollars.toLocaleString("en-US")}.00`;
    await using visit = await console.visit("/usage?days=365&span=365");
    const { page } = visit;
    const [daily, byModel] = ["Daily usage", "Models and cost"].map((name) => page.getByRole("region", { name }));
    const total = (panel = daily) => panel?.locator("tfoot td[data-label=Cost]").getByText(label, { exact: true });
    await total()?.waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    await daily?.getByText(/each bar sums [2-9] days/).waitFor();
    await page.setViewportSize({ width: 1280, height: 800 });
    // To its last day, so that no more rows come in above the other panel and move it away from the mouse.
    await pollUntil(async () => {
      await daily?.locator("tbody tr").last().scrollIntoViewIfNeeded();
      return (await daily?.locator("tbody tr").count()) === days;
    });
    for (const group of ["Model", "Key", "Both", "Day", "Owner"]) {
      await byModel?.getByRole("radio", { name: group, exact: true }).check();
      await total(byModel)?.waitFor();
      const csv = await csvOf(page, "Models and cost");
      expect([group, sumOfColumn(csv, csv[0]?.indexOf("cost") ?? 0)]).toEqual([group, dollars]);
    }
    await byModel?.getByRole("radio", { name: "Tag", exact: true }).check();
    await byModel?.getByText("A key with several tags counts for each of them.").waitFor();
    await byModel?.locator("tbody").getByText(label).waitFor();
    expect(sumOfColumn(await csvOf(page, "Daily usage"), 4)).toBe(dollars);
    await daily?.getByRole("radio", { name: "By day and key" }).check();
    await daily?.locator("tbody td[data-label=Cost]").getByText("$30.00").first().waitFor();
    expect(sumOfColumn(await csvOf(page, "Daily usage"), 6)).toBe(dollars);

    for (const path of ["/", "/keys/1"]) {
      await page.goto(console.program.adminUrl + path);
      const figure = page.locator(".figures > *").filter({ hasText: "Cost today (KST)" });
      await figure.getByText("$30.00").waitFor();
      await figure.getByText("$900.00 in 30 days").waitFor();
    }
  });
});
