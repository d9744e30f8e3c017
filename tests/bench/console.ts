/**
 * What the console fetches and what that costs its main thread, in Chromium, with five, fifty and five hundred keys and a
 * year of usage. `bun run bench --only console`
 */
import { measurePage, type PageCost, seedYear } from "../browser/support/page-cost.ts";
import { type ConsoleUnderTest, startConsole } from "../browser/support/console-under-test.ts";
import type { ConsoleResults } from "./results.ts";
import { median } from "./results.ts";

const keyCounts = [5, 50, 500];
export const rounds = 3;

const views: readonly { view: string; path: string }[] = [
  { view: "Overview", path: "/" },
  { view: "Usage, 24 h", path: "/usage" },
  { view: "Usage, 30 d", path: "/usage?range=30d" },
  { view: "Usage, 365 d", path: "/usage?range=365d" },
  { view: "Usage, 365 d by day and key", path: "/usage?days=365&daily=key" },
];

export async function measureConsole(): Promise<ConsoleResults["rows"]> {
  const rows: ConsoleResults["rows"][number][] = [];
  for (const keys of keyCounts) {
    await using console = await startConsole((dataDir) => seedYear(dataDir, keys));
    for (const { view, path } of views) rows.push({ view, keys, figures: await measureView(console, path) });
  }
  return rows;
}

async function measureView(console: ConsoleUnderTest, path: string): Promise<PageCost> {
  const runs: PageCost[] = [];
  for (let round = 0; round < rounds; round++) runs.push(await measurePage(console, { path }));
  const medianOf = (of: (figures: PageCost) => number): number => median(runs.map(of));
  return {
    firstKb: medianOf(({ firstKb }) => firstKb),
    firstMainThreadMs: medianOf(({ firstMainThreadMs }) => firstMainThreadMs),
    drawnMs: medianOf(({ drawnMs }) => drawnMs),
    refreshKb: medianOf(({ refreshKb }) => refreshKb),
    refreshMainThreadMs: medianOf(({ refreshMainThreadMs }) => refreshMainThreadMs),
  };
}

if (import.meta.main) console.log(JSON.stringify(await measureConsole(), undefined, 2));
