import { beforeAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { shared } from "../support/shared.ts";
import { hasBrowser } from "./support/console-under-test.ts";
import { showSeveralBackends } from "./support/several-backends.ts";
import { startTrafficConsole, waitForLog } from "./support/traffic-console.ts";

/** What people come to the console for, each from its overview, in at most so many clicks; what is typed is free. */
describe.skipIf(!hasBrowser)("in a few clicks", () => {
  const traffic = shared(() => startTrafficConsole());
  beforeAll(async () => {
    await traffic.chat({}, "status=500");
    await waitForLog(traffic, 1);
  });

  const begin = async (page: Page): Promise<() => Promise<number>> => {
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.evaluate(() => {
      Reflect.set(globalThis, "clicks", 0);
      const count = ({ isTrusted, detail }: MouseEvent): void => {
        if (isTrusted && detail > 0) Reflect.set(globalThis, "clicks", Number(Reflect.get(globalThis, "clicks")) + 1);
      };
      addEventListener("click", count, true);
    });
    return () => page.evaluate(() => Number(Reflect.get(globalThis, "clicks")));
  };

  test("five hand a key to a colleague", async () => {
    await using visit = await traffic.console.visit("/");
    const { page } = visit;
    const clicks = await begin(page);
    await page.getByRole("navigation").getByRole("link", { name: "API keys" }).click();
    await page.getByRole("button", { name: "New key" }).click();
    await page.keyboard.type("colleague");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("button", { name: "Copy all that its user needs" }).click();
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("rowheader", { name: "colleague" }).first().waitFor();
    expect(await clicks()).toBeLessThanOrEqual(5);
  });

  test("two tell why a request was slow or failed", async () => {
    await using visit = await traffic.console.visit("/");
    const { page } = visit;
    const clicks = await begin(page);
    await page.getByRole("navigation").getByRole("link", { name: "Requests" }).click();
    await page.getByRole("row").filter({ hasText: "500" }).first().click();
    await page.getByRole("dialog").getByText("with 500").waitFor();
    expect(await clicks()).toBeLessThanOrEqual(2);
  });

  test("three tell why a cache was not used", async () => {
    await using visit = await traffic.console.visit("/");
    const { page } = visit;
    await page.route(/\/api\/requests\?/, async (route) => {
      const response = await route.fetch();
      const body = (await response.json()) as { requests: object[] };
      for (const request of body.requests) Object.assign(request, { cache_loss: "tools_changed" });
      await route.fulfill({ response, json: body });
    });
    const clicks = await begin(page);
    await page.getByRole("navigation").getByRole("link", { name: "Requests" }).click();
    await page.locator("tr[data-row]").first().click();
    await page.getByRole("dialog").getByText("because its tools are not those of the turn before").waitFor();
    expect(await clicks()).toBeLessThanOrEqual(3);
  });

  test("three take a backend out for maintenance", async () => {
    await using visit = await traffic.console.visit("/");
    const { page } = visit;
    await showSeveralBackends(page);
    await page.route("**/api/backends/*", (route) => route.fulfill({ json: { ok: true } }));
    await page.reload();
    const clicks = await begin(page);
    await page.getByRole("navigation").getByRole("link", { name: "Backends" }).click();
    await page.getByRole("button", { name: "Take out gpu-a" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Take out" }).click();
    await page.getByText("gpu-a is taken out").waitFor();
    expect(await clicks()).toBeLessThanOrEqual(3);
  });

  test("three end a secret that leaked", async () => {
    const { key } = await traffic.console.admin.createKey("leaked one");
    await using visit = await traffic.console.visit("/");
    const { page } = visit;
    const clicks = await begin(page);
    await page.getByRole("button", { name: "Find" }).click();
    await page.keyboard.type(key.slice(-4));
    await page.getByRole("link", { name: "leaked one" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "New secret" }).click();
    await page.getByRole("button", { name: "It leaked" }).click();
    await page.getByText("The old one is no longer accepted.").waitFor();
    expect((await traffic.chat({}, "tokens=1", key)).status).toBe(401);
    expect(await clicks()).toBeLessThanOrEqual(3);
  });

  test("two show how Codex is set up", async () => {
    await using visit = await traffic.console.visit("/");
    const { page } = visit;
    const clicks = await begin(page);
    await page.getByRole("navigation").getByRole("link", { name: "Help" }).click();
    await page.getByRole("radio", { name: "Codex", exact: true }).check();
    await page.getByText("~/.codex/config.toml").waitFor();
    expect(await clicks()).toBeLessThanOrEqual(2);
  });

  test("three end a request that runs away", async () => {
    const running = traffic.chat({ stream: true }, "tokens=9; gap=60s@2").catch(() => {});
    await using visit = await traffic.console.visit("/", { expectedErrors: /ERR_INCOMPLETE/ });
    const { page } = visit;
    const clicks = await begin(page);
    await page.getByRole("link", { name: /tokens\/s/ }).click();
    await page.getByRole("button", { name: "End the request of caller" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "End request" }).click();
    await page.getByText("The request was ended").waitFor();
    await running;
    expect(await clicks()).toBeLessThanOrEqual(3);
  });

  test("one shows a holder the own key", async () => {
    await using visit = await traffic.console.visit("/me", { anonymous: true });
    const { page } = visit;
    const clicks = await begin(page);
    await page.getByLabel("API key", { exact: true }).focus();
    await page.keyboard.type(traffic.key.key);
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByRole("heading", { name: "caller" }).first().waitFor();
    expect(await clicks()).toBeLessThanOrEqual(1);
  });
});
