import { beforeAll, describe, expect, test } from "bun:test";
import { violations } from "./support/axe.ts";
import { hasBrowser } from "./support/console-under-test.ts";
import {
  startTrafficConsole,
  trafficModel,
  waitForRunning,
  waitForLog,
  waitForSums,
} from "./support/traffic-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("a key's page", () => {
  const traffic = shared(() => startTrafficConsole({ PROXY_FORCE_STREAM_USAGE: "final" }));
  beforeAll(async () => {
    await traffic.chat({ stream: true });
    await traffic.chat({}, "status=500");
    await waitForLog(traffic, 2);
    await waitForSums(traffic, 2);
  });

  test("shows the key's tokens, latency, failures and models", async () => {
    await using page = await traffic.console.visit(`/keys/${traffic.key.id}`);
    await page.getByRole("heading", { name: "caller", level: 1 }).waitFor();
    await page.getByRole("region", { name: "Tokens" }).locator("path.fill").first().waitFor();
    await page.getByRole("region", { name: "Failures" }).getByText("1 of 2 requests (50.0%)").waitFor();
    await page.getByRole("region", { name: "Usage and cost" }).getByRole("rowheader", { name: trafficModel }).waitFor();
    await page.getByText("Of the last 1 streamed response").first().waitFor();
    await page.getByText("Last used:").waitFor();
    expect(await page.locator("main").textContent()).not.toContain(traffic.key.key);
  });

  test("zooming its chart opens the key's usage", async () => {
    await using page = await traffic.console.visit(`/keys/${traffic.key.id}`);
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
    await using page = await traffic.console.visit(`/keys/${traffic.key.id}`);
    await page.getByRole("region", { name: "Failures" }).getByRole("link", { name: "Open the log" }).click();
    await page.waitForURL(`**/requests?result=failed&key=${traffic.key.id}`);
    await page.locator("tr[data-row]").first().waitFor();
    expect(await page.locator("tr[data-row]").count()).toBe(1);
  });

  test("shows limits with what is used and when it frees, and details, and edits both", async () => {
    const fields = { tokens_per_day: 5000, owner: "Kim", note: "first\nsecond", tags: ["prod"] };
    const { id } = await traffic.console.admin.createKey("described", fields);
    await using page = await traffic.console.visit(`/keys/${id}`);
    const limits = page.getByRole("region", { name: "Limits" });
    await limits.getByText("0 of 5,000").waitFor();
    await limits.getByText(/^Starts anew on .+, 00:00:00 KST$/).waitFor();
    expect(await violations(page)).toEqual([]);
    const details = page.getByRole("region", { name: "Details" });
    for (const text of ["Kim", "prod", "Everything", "Never"]) await details.getByText(text).first().waitFor();
    await details.getByRole("button", { name: "Edit details" }).click();
    const dialog = page.getByRole("dialog", { name: "Limits and details of “described”" });
    await dialog.getByLabel("May be used for").selectOption("GPU samples only");
    await dialog.getByLabel("Tags").fill("");
    await dialog.getByRole("button", { name: "Save" }).click();
    await details.getByText("GPU samples only").waitFor();
    await details.getByText("prod").waitFor({ state: "detached" });
  });

  test("replaces the secret, shows the new one once, and accepts the old one for a while", async () => {
    const { id, key } = await traffic.console.admin.createKey("rotated");
    await using page = await traffic.console.visit(`/keys/${id}`);
    await page.getByRole("button", { name: "New secret" }).click();
    const form = page.getByRole("dialog", { name: "New secret for “rotated”" });
    expect(await violations(page)).toEqual([]);
    await form.getByRole("button", { name: "It is planned" }).click();
    const dialog = page.getByRole("dialog", { name: "Key for “rotated”" });
    await dialog.getByText("The old one is accepted for one more hour.").waitFor();
    const secret = (await dialog.getByRole("code").first().textContent()) ?? "";
    expect(secret).not.toBe(key);
    expect([
      (await traffic.chat({}, "tokens=1", key)).status,
      (await traffic.chat({}, "tokens=1", secret)).status,
    ]).toEqual([200, 200]);
    await page.keyboard.press("Escape");
    await page.mouse.click(5, 5);
    expect(await dialog.isVisible()).toBe(true);
    await dialog.getByRole("button", { name: "Copy the key" }).click();
    await dialog.getByRole("button", { name: "Done" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await page.content()).not.toContain(secret);
  });

  test("takes the form for a new secret with it when it is left", async () => {
    const { id } = await traffic.console.admin.createKey("left");
    await using page = await traffic.console.visit("/keys");
    await page.getByRole("link", { name: "left", exact: true }).click();
    await page.waitForURL(`**/keys/${id}`);
    await page.getByRole("button", { name: "New secret" }).click();
    await page.getByRole("dialog", { name: "New secret for “left”" }).waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "API keys", includeHidden: true }).waitFor({ state: "attached" });
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  test("asks about running responses after switching off, and ends them", async () => {
    const { id, key } = await traffic.console.admin.createKey("still running");
    await using page = await traffic.console.visit(`/keys/${id}`);
    const running = traffic.chat({ stream: true }, "tokens=9; gap=60s@2", key).catch(() => {});
    await waitForRunning(traffic, id);
    await page.getByRole("switch", { name: "still running is active" }).click();
    const dialog = page.getByRole("dialog", { name: "End the running responses of “still running”?" });
    await dialog.getByText("1 of its responses still runs.").waitFor();
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "End them now" }).click();
    await running;
    await dialog.waitFor({ state: "detached" });
  });

  test("switches, renames and deletes the key", async () => {
    const { id } = await traffic.console.admin.createKey("short-lived");
    await using page = await traffic.console.visit(`/keys/${id}`);
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

  test.each(["999999", "abc", "%E0%A4%A", "999999#%E0"])("of the unknown key %s says so", async (id) => {
    await using page = await traffic.console.visit(`/keys/${id}`);
    await page.getByText("This key does not exist").waitFor();
    await page.getByRole("link", { name: "All API keys" }).waitFor();
  });
});
