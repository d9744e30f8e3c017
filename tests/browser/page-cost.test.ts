import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type ConsoleUnderTest, hasBrowser, startConsole } from "./support/console-under-test.ts";
import { measurePage, seedManyKeys, seedRequests, seedYear } from "./support/page-cost.ts";

// A loaded machine takes long to seed so much.
setDefaultTimeout(180_000);

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

describe.skipIf(!hasBrowser)("with ten thousand keys", () => {
  test("/keys fetches at most 60 kB, nothing while nothing changes, and all keys once they are looked for", async () => {
    await using console = await startConsole((dataDir) => seedManyKeys(dataDir, 10_000));
    const cost = await measurePage(console, { path: "/keys", refreshed: "**/api/keys?limit=*" });
    expect(cost.firstKb).toBeWithin(1, 60);
    // Heads of responses, and the last hours of those that were used.
    expect(cost.refreshKb).toBeLessThan(6);

    await using page = await console.visit("/keys");
    await page.getByText("The first 500 keys").waitFor();
    await page.getByRole("checkbox", { name: "Select all keys" }).check();
    await page.getByRole("button", { name: "Select all 10,000" }).click();
    await page.getByText("10,000 keys selected").waitFor();
    await page.reload();
    await page.getByText("The first 500 keys").waitFor();
    const unchanged = page.waitForResponse("**/api/keys?limit=*");
    await page.getByRole("button", { name: "Refresh" }).click();
    expect((await unchanged).status()).toBe(304);
    const renamed = page.getByRole("row").filter({ hasText: "renamed" });
    await console.admin.updateKey(1, { name: "renamed" });
    await page.getByRole("button", { name: "Refresh" }).click();
    await renamed.waitFor();
    await page.getByRole("searchbox").fill("team-9999 ");
    await page.getByRole("row").filter({ hasText: "team-9999 service key" }).waitFor();
    await page.getByText("1 of 10,000 keys").waitFor();
  });
});
