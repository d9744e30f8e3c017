import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type ConsoleUnderTest, hasBrowser, startConsole } from "./support/console-under-test.ts";
import { measurePage, seedRequests, seedYear } from "./support/page-cost.ts";

setDefaultTimeout(60_000);

describe.skipIf(!hasBrowser)("with five hundred keys and a year of usage", () => {
  let console: ConsoleUnderTest;
  beforeAll(async () => {
    console = await startConsole(async (dataDir) => {
      await seedYear(dataDir, 500);
      await seedRequests(dataDir, 1000);
    });
  }, 240_000);
  afterAll(() => console[Symbol.asyncDispose]());

  test.each([
    { path: "/" },
    { path: "/keys" },
    { path: "/keys/1", refreshed: "**/api/keys?*" },
    { path: "/usage" },
    { path: "/usage?range=7d" },
    { path: "/usage?range=30d" },
    { path: "/usage?range=365d" },
    { path: "/usage?range=365d&by=day" },
  ])("$path fetches at most 200 kB, and 23 kB for a refresh", async (measured) => {
    const cost = await measurePage(console, measured);
    expect(cost.firstKb).toBeGreaterThan(1);
    expect(cost.firstKb).toBeLessThan(200);
    expect(cost.refreshKb).toBeGreaterThan(1);
    expect(cost.refreshKb).toBeLessThan(23);
  });

  test("the log of /requests is read again for at most 20 kB", async () => {
    const headers = { cookie: console.admin.cookie, "accept-encoding": "gzip" };
    const log = await fetch(`${console.program.adminUrl}/api/requests?limit=100`, { headers, decompress: false });
    const { byteLength } = await log.arrayBuffer();
    expect(byteLength).toBeGreaterThan(2000);
    expect(byteLength).toBeLessThan(20_000);
  });
});
