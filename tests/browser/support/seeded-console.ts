import type { Page } from "playwright-core";
import { type ConsoleUnderTest, startConsole } from "./console-under-test.ts";
import { reading, seed, seedKeys, usage } from "./seed.ts";

/** A name too long for any table. */
export const longName = `${"a_very_long_name_without_a_place_to_break".repeat(2)} 와 그 밖의 것들`;

/** A console with active and inactive keys, recent usage, a live GPU and a stale one. */
export function startSeededConsole(): Promise<ConsoleUnderTest> {
  return startConsole((dataDir) =>
    seed(dataDir, async (store) => {
      const ids = await seedKeys(store, ["alpha", longName, "<i>beta</i>"]);
      const [keyId = 0, , inactiveId = 0] = ids;
      await store.keys.update(inactiveId, { isActive: false });
      const now = Math.floor(Date.now() / 60_000);
      const minutes = Array.from({ length: 300 }, (_, index) => now - index);
      await store.usage.add(ids.flatMap((id) => minutes.map((minute) => usage(id, minute, [3, 5000, 700]))));
      const stale = (now - 10) * 60_000;
      await store.gpu.add({ keyId, recordedAt: stale, readings: [reading(1, { name: longName.slice(0, 64) })] });
      await store.gpu.add({ keyId, recordedAt: Date.now(), readings: [reading(0)] });
    }),
  );
}

/** The path of each page. */
export const pagePaths = [
  "/login",
  "/me",
  "/",
  "/keys",
  "/usage",
  "/gpus",
  "/gpus/0",
  "/keys/1",
  "/requests",
  "/requests/running",
  "/requests/latency",
  "/settings",
  "/backends",
  "/settings/prices",
  "/settings/account",
  "/settings/account/changes",
  "/help",
  "/help/playground",
  "/help/explain",
  "/nowhere",
] as const;

export async function waitUntilLoaded(page: Page): Promise<void> {
  await page.waitForFunction(() => document.querySelector(".skeleton") === null);
}

/** Resolves once everything that changed so far is on the screen: after two frames. */
export async function waitUntilDrawn(page: Page): Promise<void> {
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}
