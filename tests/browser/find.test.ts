import { beforeAll, describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { shared } from "../support/shared.ts";
import { violations } from "./support/axe.ts";
import { hasBrowser } from "./support/console-under-test.ts";
import { waitUntilDrawn } from "./support/seeded-console.ts";
import { startTrafficConsole, trafficModel, waitForLog } from "./support/traffic-console.ts";

/** As clients make them, and as keys may look. */
const requestId = "7f3c1a52-9d1e-4b7e-8a41-0c5d2e6f9b10";

describe.skipIf(!hasBrowser)("the box", () => {
  const traffic = shared(() => startTrafficConsole());
  beforeAll(async () => {
    await traffic.chat({}, "tokens=5", traffic.key.key, { "x-request-id": requestId });
    await waitForLog(traffic, 1);
  });
  const box = (page: Page): Locator => page.getByRole("dialog", { name: "Find" });
  const open = async (page: Page, text: string): Promise<Locator> => {
    await page.keyboard.press("Control+k");
    await box(page).getByRole("searchbox").waitFor();
    await page.keyboard.insertText(text);
    return box(page).getByRole("list", { name: "Found" }).getByRole("link").first();
  };

  test("opens with a pasted id the request itself, and writes nothing else into the address", async () => {
    await using page = await traffic.console.visit("/keys");
    await (await open(page, requestId)).waitFor();
    expect(await violations(page)).toEqual([]);
    expect(page.url()).toEndWith("/keys");
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/requests?open=${requestId}`);
    await page.getByRole("dialog").getByText("Timeline").waitFor();
  });

  test("takes no letter for a shortcut that is typed before it is there", async () => {
    await using page = await traffic.console.visit("/keys", { fresh: true });
    const asked = Promise.withResolvers<void>();
    const comes = Promise.withResolvers<void>();
    await page.route("**/assets/find-dialog-*.js", async (route) => {
      asked.resolve();
      await comes.promise;
      await route.continue();
    });
    await page.keyboard.press("/");
    await asked.promise;
    await page.keyboard.press("n");
    comes.resolve();
    await box(page).waitFor();
    expect(await page.getByRole("dialog").count()).toBe(1);
  });

  test("finds a key by its name, by its ends and by the whole of it, and never writes that anywhere", async () => {
    await using page = await traffic.console.visit("/requests");
    for (const text of ["CALL", traffic.key.key.slice(-4), traffic.key.key]) {
      await page.goto(`${traffic.console.program.adminUrl}/requests`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await (await open(page, text)).getByText("caller").waitFor();
      await page.keyboard.press("Enter");
      await page.waitForURL(`**/keys/${traffic.key.id}`);
    }
    expect(await page.evaluate(() => JSON.stringify(history.state))).not.toContain(traffic.key.key);
  });

  test("opens by its button, from a field too, finds models and backends, and says when there is nothing", async () => {
    await using page = await traffic.console.visit("/requests");
    await page.getByRole("button", { name: "Find" }).click();
    await box(page).getByText("Keyboard shortcuts").waitFor();
    await page.keyboard.type("no such thing");
    await box(page).getByText("Nothing has this name or id").waitFor();
    await page.keyboard.press("Enter");
    // The first empties the field.
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await box(page).waitFor({ state: "detached" });
    // While a button of the mouse is down, the log answers that it has no such request.
    const { promise: isDown, resolve: press } = Promise.withResolvers<void>();
    await page.route("**/api/requests?*request_id*", (route) => isDown.then(() => route.continue()));
    const answered = page.waitForResponse("**/api/requests?*request_id*");
    await (await open(page, "127.0.0.1")).hover();
    await page.mouse.down();
    press();
    await answered;
    await waitUntilDrawn(page);
    await page.mouse.up();
    await page.waitForURL("**/backends");
    await page.goto(`${traffic.console.program.adminUrl}/requests?backend=x`);
    await page.getByLabel("Backend", { exact: true }).focus();
    await (await open(page, trafficModel.slice(0, 5))).click();
    await page.waitForURL(`**/requests?model=${trafficModel}`);
  });
});

describe.skipIf(!hasBrowser)("filters of the request log", () => {
  const traffic = shared(() => startTrafficConsole());
  beforeAll(async () => {
    await traffic.chat({}, "tokens=5", traffic.key.key, { "user-agent": "claude-cli/2.1 (external)" });
    await traffic.chat({}, "tokens=5", traffic.key.key, { "user-agent": "codex/1" });
    await waitForLog(traffic, 2);
  });
  const rows = (page: Page): Locator => page.locator("tbody tr[data-row]");

  test("are chips that apply while one types, and go with their cross", async () => {
    await using page = await traffic.console.visit("/requests");
    await rows(page).nth(1).waitFor();
    await page.getByRole("button", { name: "Add a filter" }).click();
    await page.getByRole("button", { name: "Client program" }).click();
    // Neither Enter nor a click elsewhere.
    await page.keyboard.type("claude-cli");
    await page.waitForURL("**/requests?client=claude-cli");
    await rows(page).nth(1).waitFor({ state: "detached" });
    await rows(page).first().waitFor();
    expect(await rows(page).count()).toBe(1);
    expect(await page.getByLabel("Client program", { exact: true }).inputValue()).toBe("claude-cli");
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "Remove Client program" }).click();
    await rows(page).nth(1).waitFor();
    expect(await page.getByLabel("Client program", { exact: true }).count()).toBe(0);
    expect(new URL(page.url()).search).toBe("");
  });

  test("a chip that is emptied stays until its cross is clicked", async () => {
    await using page = await traffic.console.visit("/requests?client=codex");
    await rows(page).first().waitFor();
    await page.getByLabel("Client program", { exact: true }).fill("");
    await rows(page).nth(1).waitFor();
    expect(await page.getByLabel("Client program", { exact: true }).inputValue()).toBe("");
  });
});
