import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ConsoleUnderTest } from "./support/console-under-test.ts";
import { startSeededConsole } from "./support/seeded-console.ts";

const row = (name: string, input: number, cached: number, more: object = {}) => ({
  name,
  id: null,
  request_count: 1200,
  input_tokens: input,
  cached_tokens: cached,
  lost_count: 0,
  is_low: false,
  rule: null,
  ...more,
});
const shares = {
  by: "client",
  hours: 1,
  since: null,
  is_reported: true,
  rows: [
    row("claude-cli", 48_000_000, 900_000, { is_low: true, rule: "drop_billing_line", lost_count: 31 }),
    row("opencode", 9_000_000, 8_100_000),
  ],
};

describe("what came from caches", () => {
  let console: ConsoleUnderTest;
  beforeAll(async () => {
    console = await startSeededConsole();
  });
  afterAll(() => console[Symbol.asyncDispose]());

  test("the overview names a client of which little did, the rule that mends it, and its requests", async () => {
    await using visit = await console.visit("/");
    const { page } = visit;
    await page.route("**/api/cache?*", (route) => route.fulfill({ json: shares }));
    await page.reload();
    const notice = page.getByRole("note").filter({ hasText: "came from a cache" });
    await notice.waitFor();
    expect(await notice.innerText()).toContain("of the input of claude-cli in the last hour came from a cache");
    expect(await notice.innerText()).toContain("set CLIENT_RULES to auto, or add drop_billing_line");
    const link = notice.getByRole("link", { name: "See its requests" });
    expect(await link.getAttribute("href")).toBe("/requests?client=claude-cli");
  });

  test("the page Usage shows shares by what is chosen", async () => {
    await using visit = await console.visit("/usage");
    const { page } = visit;
    await page.route("**/api/cache?*", async (route) => {
      const by = new URL(route.request().url()).searchParams.get("by");
      const rows = by === "conversation" ? [{ ...row("", 5000, 4000), name: null, id: 123_456_789 }] : shares.rows;
      await route.fulfill({ json: { ...shares, by, rows } });
    });
    await page.reload();
    const panel = page.getByRole("region", { name: "Input from caches" });
    await panel.getByRole("row", { name: /^opencode 1,200 9,000,000 8,100,000 90% None/ }).waitFor();
    await panel.getByRole("row", { name: /^claude-cli .*% 31 requests/ }).waitFor();
    await panel.getByRole("radio", { name: "Conversation" }).check();
    const link = panel.getByRole("link", { name: "…456789" });
    expect(await link.getAttribute("href")).toBe("/requests?conversation=123456789");
  });
});
