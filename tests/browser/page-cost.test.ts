import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type ConsoleUnderTest, hasBrowser, startConsole } from "./support/console-under-test.ts";
import { measurePage, seedYear } from "./support/page-cost.ts";

setDefaultTimeout(60_000);

describe.skipIf(!hasBrowser)("with five hundred keys and a year of usage", () => {
  let console: ConsoleUnderTest;
  beforeAll(async () => {
    console = await startConsole((dataDir) => seedYear(dataDir, 500));
  }, 240_000);
  afterAll(() => console[Symbol.asyncDispose]());

  test.each([
    "/",
    "/keys",
    "/usage",
    "/usage?range=7d",
    "/usage?range=30d",
    "/usage?range=365d",
    "/usage?days=365&daily=key",
  ])("%s fetches at most 200 kB, and 20 kB for a refresh", async (path) => {
    const cost = await measurePage(console, path);
    expect(cost.firstKb).toBeGreaterThan(1);
    expect(cost.firstKb).toBeLessThan(200);
    expect(cost.refreshKb).toBeGreaterThan(1);
    expect(cost.refreshKb).toBeLessThan(20);
  });
});
