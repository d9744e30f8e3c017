import { expect, test } from "bun:test";
import { rounds } from "../support/rounds.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { type DailyRow, openTestStore, readReport } from "./test-store.ts";

const concurrency = 16;
const program = `${import.meta.dir}/counting-program.ts`;

/** @returns the number of events that the program reported as recorded before SIGKILL */
async function countUntilKilled(dataDir: string, minRecorded: number): Promise<number> {
  const child = Bun.spawn([process.execPath, program, dataDir, String(concurrency)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  let recorded = 0;
  for await (const bytes of child.stdout) {
    recorded += bytes.length;
    if (recorded >= minRecorded) child.kill("SIGKILL");
  }
  expect(await child.exited).not.toBe(0);
  return recorded;
}

test("every recorded event is still counted after kill -9", async () => {
  using folder = createTempFolder();
  let recorded = 0;
  for (let round = 1; round <= rounds; round++) {
    recorded += await countUntilKilled(folder.path, 1 + round * 100);
    await using opened = await openTestStore(Date.now, folder);
    const total = await opened.store.usage.sumOfKeys();
    expect(total.requestCount).toBeGreaterThanOrEqual(recorded);
    expect(total.requestCount).toBeLessThanOrEqual(recorded + round * concurrency);
    expect(total.inputTokens).toBe(total.requestCount * 3);
    const minutes = await opened.store.usage.sumOfMinutes(0, 100_000_000);
    const days = await readReport<DailyRow>(opened.store.usage.daily("2020-01-01"));
    expect(minutes).toEqual(total);
    expect(days.reduce((sum, day) => sum + day.request_count, 0)).toBe(total.requestCount);
  }
});
