import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasBrowser } from "./support/console-under-test.ts";
import {
  startTrafficConsole,
  type TrafficConsole,
  trafficModel,
  waitForLog,
  waitForSums,
} from "./support/traffic-console.ts";

describe.skipIf(!hasBrowser)("a key's page", () => {
  let traffic: TrafficConsole;
  beforeAll(async () => {
    traffic = await startTrafficConsole({ PROXY_FORCE_STREAM_USAGE: "final" });
    await traffic.chat({ stream: true });
    await traffic.chat({}, "status=500");
    await waitForLog(traffic, 2);
    await waitForSums(traffic, 2);
  });
  afterAll(() => traffic.console[Symbol.asyncDispose]());

  test("shows the key's tokens, latency, failures and models", async () => {
    await using visit = await traffic.console.visit(`/keys/${traffic.key.id}`);
    const { page } = visit;
    await page.getByRole("heading", { name: "caller", level: 1 }).waitFor();
    await page.getByRole("region", { name: "Tokens" }).locator("path.fill").first().waitFor();
    await page.getByRole("region", { name: "Failures" }).getByText("1 of 2 requests (50.0%)").waitFor();
    await page.getByRole("region", { name: "Models and cost" }).getByRole("link", { name: trafficModel }).waitFor();
    await page.getByText("Of the last 1 streamed response").first().waitFor();
    await page.getByText("Last used:").waitFor();
    expect(await page.locator("main").textContent()).not.toContain(traffic.key.key);
  });

  test("zooming its chart opens the key's usage", async () => {
    await using visit = await traffic.console.visit(`/keys/${traffic.key.id}`);
    const { page } = visit;
    const tokens = page.getByRole("region", { name: "Tokens" });
    await tokens.locator("path.fill").first().waitFor();
    await tokens.getByRole("group", { name: "Tokens of the key over time" }).focus();
    await page.keyboard.press("Shift+ArrowLeft");
    await page.keyboard.press("Shift+ArrowLeft");
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(`/usage\\?key=${traffic.key.id}&from=.+&to=`));
    await page.locator(".chip").getByText("caller").waitFor();
  });

  test("leads to the key's failures in the log", async () => {
    await using visit = await traffic.console.visit(`/keys/${traffic.key.id}`, { expectedErrors: /ERR_INCOMPLETE/ });
    const { page } = visit;
    await page.getByRole("region", { name: "Failures" }).getByRole("link", { name: "Open the log" }).click();
    await page.waitForURL(`**/requests?result=failed&key=${traffic.key.id}`);
    await page.locator("tr[data-row]").first().waitFor();
    expect(await page.locator("tr[data-row]").count()).toBe(1);
  });

  test("switches, renames and deletes the key", async () => {
    const { id } = await traffic.console.admin.createKey("short-lived");
    await using visit = await traffic.console.visit(`/keys/${id}`);
    const { page } = visit;
    await page.getByRole("switch", { name: "short-lived is active" }).click();
    await page.getByRole("switch", { name: "short-lived is active", checked: false }).waitFor();
    await page.getByRole("button", { name: "Rename" }).click();
    await page.getByLabel("New name of short-lived").fill("renamed");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "renamed", level: 1 }).waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete key" }).click();
    await page.waitForURL("**/keys");
    await page.getByText("“renamed” was deleted").waitFor();
  });

  test.each(["999999", "abc"])("of the unknown key %s says so", async (id) => {
    await using visit = await traffic.console.visit(`/keys/${id}`);
    await visit.page.getByText("This key does not exist").waitFor();
    await visit.page.getByRole("link", { name: "All API keys" }).waitFor();
  });
});
