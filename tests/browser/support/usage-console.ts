import type { Locator, Page } from "playwright-core";
import { type ConsoleUnderTest, downloadOf, startConsole } from "./console-under-test.ts";
import { reading, seed, seedKeys, usage } from "./seed.ts";

export interface Sums {
  request_count: number;
  input_tokens: number;
  output_tokens: number;
}

export const keyNames = ["alpha", "beta", "gamma", ...Array.from({ length: 9 }, (_, index) => `small ${index}`)];
const quietMinutes = 90;

/** A console with four hours and a year of usage, none of it recent, so that no bucket changes during a test. */
export const startUsageConsole = (): Promise<ConsoleUnderTest> =>
  startConsole((dataDir) =>
    seed(dataDir, async (store) => {
      const keyIds = await seedKeys(store, keyNames);
      const now = Math.floor(Date.now() / 60_000);
      const recent = Array.from({ length: 240 }, (_, index) => now - quietMinutes - index);
      const days = Array.from({ length: 365 }, (_, index) => now - quietMinutes - (index + 1) * 1440);
      await store.usage.add(
        keyIds.flatMap((id, rank) =>
          [...recent, ...days].map((minute) => usage(id, minute, [1, 10 * (rank + 1), Math.round(1000 / (rank + 1))])),
        ),
      );
      await store.gpu.add({ keyId: keyIds[0] ?? 0, recordedAt: Date.now(), readings: [reading(0)] });
      // Embeddings have no output tokens, and this key has only embeddings.
      const [indexer = 0] = await seedKeys(store, ["indexer"], { seeded: keyNames.length });
      await store.usage.add([usage(indexer, now - 3 * 1440, [5, 500, 0])]);
    }),
  );

export const chartOf = (page: Page): Locator =>
  page.getByRole("group", { name: /by (key|team|user|model) over time$/ });

export const waitForBars = (page: Page): Promise<void> => chartOf(page).locator("path.fill").first().waitFor();

/** The CSV export of a panel, as rows of cells. */
export async function csvOf(page: Page, panel: string): Promise<string[][]> {
  const button = page.getByRole("region", { name: panel }).getByRole("button", { name: "CSV", disabled: false });
  // By keyboard: rows that come into view above the panel move the button away between a mouse's press and release.
  return (await downloadOf(page, () => button.press("Enter")))
    .trimEnd()
    .split("\r\n")
    .map((line) => line.split(","));
}

/** The sum of a column of a CSV. */
export const sumOfColumn = (rows: readonly string[][], column: number): number =>
  rows.slice(1).reduce((total, row) => total + Number(row[column]), 0);

/** The sum of a field of an API response. */
export const sumOfField = (rows: readonly Sums[], field: keyof Sums): number =>
  rows.reduce((total, row) => total + row[field], 0);
