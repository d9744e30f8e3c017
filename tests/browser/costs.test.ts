import { describe, expect, test } from "bun:test";
import { shared } from "../support/shared.ts";
import { hasBrowser, startConsole } from "./support/console-under-test.ts";
import { seed, seedKeys, usage } from "./support/seed.ts";
import { csvOf, sumOfColumn } from "./support/usage-console.ts";

describe.skipIf(!hasBrowser)("the cost of a year with 30 models", () => {
  const days = 365;
  const models = 30;
  const console = shared(() =>
    startConsole((dataDir) =>
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
    ),
  );

  test("is the same by each group, in the CSV, the figures and the API, and other pages have it too", async () => {
    const dollars = days * models;
    const label = `$${dollars.toLocaleString("en-US")}.00`;
    await using page = await console.visit("/usage?range=365d");
    const panel = page.getByRole("region", { name: "Usage and cost" });
    await page.locator(".figure", { hasText: "Cost" }).getByText(label, { exact: true }).waitFor();
    for (const group of ["Key", "Model", "Key and model", "Day"]) {
      await panel.getByRole("radio", { name: group, exact: true }).check();
      await panel
        .locator("table:not(.stale) thead")
        .getByText(group === "Key and model" ? "Key" : group)
        .waitFor();
      await panel.locator("tfoot td[data-label=Cost]").getByText(label, { exact: true }).waitFor();
      const csv = await csvOf(page, "Usage and cost");
      expect([group, sumOfColumn(csv, csv[0]?.indexOf("cost") ?? 0)]).toEqual([group, dollars]);
    }
    await page.goto(`${console.program.adminUrl}/keys/1`);
    const figure = page.locator(".figures > *").filter({ hasText: "Cost today (KST)" });
    await figure.getByText("$30.00").waitFor();
    await figure.getByText("$900.00 in 30 days").waitFor();
  });
});
