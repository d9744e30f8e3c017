import { describe, expect, test } from "bun:test";
import type { Locator } from "playwright-core";
import { logIn } from "../support/admin-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { violations } from "./support/axe.ts";
import { hasBrowser, password, startConsole } from "./support/console-under-test.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("settings", () => {
  const console = shared(() => startConsole(undefined, { METRICS_TOKEN: "a-token-nobody-may-see", LOG_LEVEL: "warn" }));

  test("are listed with value and origin, and secrets only as set", async () => {
    await using visit = await console.visit("/settings");
    const { page } = visit;
    const row = (name: string) => page.getByRole("row").filter({ has: page.getByText(name, { exact: true }) });
    await row("LOG_LEVEL").getByText("warn", { exact: true }).waitFor();
    await row("LOG_LEVEL").getByText("Environment").waitFor();
    // At first those that are set; a search looks through all.
    expect(await row("MAX_BODY_BYTES").count()).toBe(0);
    await page.getByRole("searchbox").fill("max_body");
    await row("MAX_BODY_BYTES").waitFor();
    await page.getByRole("searchbox").fill("");
    await page.getByRole("radio", { name: "All" }).check();
    await row("MAX_BODY_BYTES").getByText("bytes (64 MiB)").waitFor();
    await row("MAX_BODY_BYTES").getByText("the largest JSON body that is held to be rewritten").waitFor();
    // The handbook tells of each, and the bounds are its title.
    expect(
      await page
        .locator('td[data-label="What it does"]')
        .filter({ hasText: /whole number/ })
        .count(),
    ).toBe(0);
    expect(await page.getByRole("navigation", { name: "Settings" }).getByRole("link").allTextContents()).toEqual([
      "Server",
      "Prices",
      "Account",
      "Changes",
    ]);
    await page.getByRole("rowgroup").filter({ hasText: "Log and metrics" }).getByText("LOG_LEVEL").waitFor();
    await row("METRICS_TOKEN").getByText("Set (secret)").waitFor();
    expect(await page.content()).not.toContain("a-token-nobody-may-see");
    expect(await page.content()).not.toContain(password);
    await page.getByRole("searchbox").fill("no such setting");
    await page.getByText("No matching setting").waitFor();
    await page.getByRole("searchbox").fill("");
    await page.getByRole("radio", { name: "Set" }).check();
    await row("PROXY_HAN_GUARD").waitFor({ state: "detached" });
    await page.getByRole("region", { name: "Database" }).getByText("request_log", { exact: true }).waitFor();
    await page.getByRole("region", { name: "Retention" }).getByText("Request log").waitFor();
  });

  test("what new keys get is said in the dialogs that make them, and may be changed there", async () => {
    const { id } = await console.admin.expectOk<{ id: number }>("POST", "/api/teams", { name: "ml" });
    await using visit = await console.visit("/settings");
    const { page } = visit;
    const panel = page.getByRole("region", { name: "New keys" });
    await page.getByText("New keys have no limits.").waitFor();
    expect(await panel.count()).toBe(0);
    await page.getByRole("button", { name: "Edit what new keys get" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Tokens per day").fill("1.5M");
    await dialog.getByLabel("Concurrent requests").fill("4");
    await dialog.getByLabel("Expires after days").fill("30");
    await dialog.getByLabel("Allowed models").fill("qwen*");
    await dialog.getByRole("combobox", { name: "Team" }).selectOption("ml");
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    const facts = [
      "4 concurrent requests",
      "1,500,000 tokens per day",
      "Models: qwen*",
      "Expires after 30 days",
      "Team: ml",
    ];
    const shown = (within: Locator) => within.getByRole("listitem").allTextContents();
    await panel.getByText("Team: ml").waitFor();
    expect(await shown(panel)).toEqual(facts);

    await page.keyboard.press("n");
    await dialog.getByText("Team: ml").waitFor();
    expect(await shown(dialog)).toEqual(facts);
    await dialog.getByLabel("Name").fill("by the policy");
    await dialog.getByText("Limits and details").click();
    expect(await dialog.getByLabel("Tokens per day").inputValue()).toBe("1,500,000");
    expect(await dialog.getByLabel("Expires").inputValue()).not.toBe("");
    expect(await violations(page)).toEqual([]);
    await dialog.getByLabel("Concurrent requests").fill("");
    await dialog.getByRole("combobox", { name: "Team" }).selectOption("None");
    await dialog.getByRole("button", { name: "Create key" }).click();
    await dialog.getByRole("code").first().waitFor();
    const [key] = await console.admin.expectOk<object[]>("GET", "/api/keys?search=by%20the%20policy");
    expect(key).toMatchObject({
      tokens_per_day: 1_500_000,
      max_concurrency: null,
      allowed_models: ["qwen*"],
      team_id: null,
    });
    await console.admin.expectOk("PUT", "/api/key-policy", { defaults: {} });
    await console.admin.expectOk("DELETE", `/api/teams/${id}`);
  });

  test("agents that use a server without heartbeats are told", async () => {
    const headers = { "x-api-key": (await console.admin.createKey("codex")).key, "user-agent": "codex_exec/0.169.0" };
    await fetch(`${console.program.url}/v1/models`, { headers });
    const seen = async (): Promise<string> =>
      (await console.admin.request("GET", "/api/requests?client=codex_exec")).text();
    await pollUntil(async () => (await seen()).includes("codex_exec"));
    await using visit = await console.visit("/settings");
    await visit.page.getByText("Set PROXY_SSE_KEEPALIVE=15.").waitFor();
  });

  test("a name of a vendor's model that a client asked for is told while no alias is set", async () => {
    const { key } = await console.admin.createKey("claude");
    const init = { method: "POST", headers: { "x-api-key": key, "content-type": "application/json" } };
    await fetch(`${console.program.url}/v1/messages`, { ...init, body: '{"model":"claude-haiku"}' });
    const asked = async (): Promise<string> =>
      (await console.admin.request("GET", "/api/latency?bucket_minutes=60&by=model")).text();
    await pollUntil(async () => (await asked()).includes("claude-haiku"));
    await using visit = await console.visit("/settings");
    await visit.page.getByRole("note").getByText("asked for claude-haiku").waitFor();
  });

  test("a password from the environment is changed there", async () => {
    await using visit = await console.visit("/settings/account");
    await visit.page.getByText("The password is set by ADMIN_PASSWORD").waitFor();
    expect(await visit.page.getByRole("button", { name: "Change password" }).count()).toBe(0);
  });

  test("other sessions can be ended, one or all, and the own one stays", async () => {
    const second = await logIn(console.program.adminUrl, "admin", password);
    const third = await logIn(console.program.adminUrl, "admin", password);
    await using visit = await console.visit("/settings/account");
    const { page } = visit;
    const end = page.getByRole("button", { name: /^End the session of/ });
    await end.nth(1).waitFor();
    expect(await page.getByText("This session").count()).toBe(1);
    const cells = page.locator(".sessions td");
    await page.setViewportSize({ width: 320, height: 640 });
    expect(await cells.evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).length)).toBe(0);
    await end.first().click();
    await page.getByText("The session was ended").waitFor();
    await end.nth(1).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "End all others" }).click();
    await page.getByText("All other sessions were ended").waitFor();
    await end.first().waitFor({ state: "detached" });
    for (const client of [second, third]) expect((await client.request("GET", "/api/me")).status).toBe(401);
    expect((await console.admin.request("GET", "/api/me")).status).toBe(200);
  });
});

describe.skipIf(!hasBrowser)("the own password", () => {
  const console = shared(() => startConsole());

  test("changes with the current one, and only if the new one was typed twice", async () => {
    await using visit = await console.visit("/nowhere", { expectedErrors: /status of 403/ });
    const { page } = visit;
    // The program under test has ADMIN_PASSWORD; the form is that of one without.
    await page.route("**/api/settings", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), password_from_environment: false } });
    });
    const bodies: unknown[] = [];
    await page.route("**/api/password", async (route) => {
      const body = route.request().postDataJSON();
      bodies.push(body);
      const isRight = body.current_password === password;
      await route.fulfill(
        isRight ? { json: { ok: true } } : { status: 403, json: { error: "The current password is wrong" } },
      );
    });
    await page.goto(`${console.program.adminUrl}/settings/account`);
    const change = page.getByRole("button", { name: "Change password" });
    const fill = async (current: string, next: string, again: string): Promise<void> => {
      await page.getByLabel("Current password").fill(current);
      await page.getByLabel("New password", { exact: true }).fill(next);
      await page.getByLabel("New password, again").fill(again);
      await change.click();
    };
    await fill(password, "a new password", "another password");
    await page.getByRole("alert").getByText("The two new passwords differ.").waitFor();
    expect(bodies).toEqual([]);
    await fill("wrong", "a new password", "a new password");
    await page.getByRole("alert").getByText("The current password is wrong.").waitFor();
    await fill(password, "a new password", "a new password");
    await page.getByText("The password was changed").waitFor();
    expect(bodies.at(-1)).toMatchObject({ current_password: password, new_password: "a new password" });
    await pollUntil(async () => (await page.getByLabel("Current password").inputValue()) === "");
  });
});
