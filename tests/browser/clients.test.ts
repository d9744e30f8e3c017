import { beforeAll, describe, expect, test } from "bun:test";
import { pollUntil } from "../support/poll-until.ts";
import { violations } from "./support/axe.ts";
import { hasBrowser, startConsole } from "./support/console-under-test.ts";
import { csvOf } from "./support/usage-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("coding agents", () => {
  let key: string;
  const console = shared(() => startConsole(undefined, { PROXY_HAN_GUARD: "off" }));
  beforeAll(async () => {
    ({ key } = await console.admin.createKey("engineers"));
    const send = async (requestClass: string, id: string, text: string): Promise<void> => {
      const response = await fetch(`${console.program.url}/v1/messages`, {
        method: "POST",
        headers: {
          "x-api-key": key,
          "content-type": "application/json",
          "user-agent": "claude-cli/2.1.332 (external, cli)",
          "x-claude-code-request-class": requestClass,
          "x-request-id": id,
        },
        body: JSON.stringify({ model: "m", max_tokens: 5, messages: [{ role: "user", content: text }] }),
      });
      await response.text();
    };
    await send("main", "first-request", "a".repeat(2760));
    await send("compaction", "second-request", "a".repeat(1240));
    await pollUntil(async () => {
      const listed = await console.admin.expectOk<{ requests: unknown[] }>("GET", "/api/requests");
      return listed.requests.length === 2;
    });
  });

  test("Usage is grouped by client, by the request log", async () => {
    await using page = await console.visit("/usage");
    const panel = page.getByRole("region", { name: "Usage and cost" });
    await panel.getByRole("radio", { name: "Client" }).check();
    await page.waitForURL("**/usage?by=client");
    await panel.getByRole("row", { name: /^claude-cli 2 1,002 10$/ }).waitFor();
    await panel.getByText("By the request log.").waitFor();
  });

  test("Requests are grouped by what their filters know, and a group filters them", async () => {
    await using page = await console.visit("/requests");
    await page.getByLabel("Group by").selectOption("Class");
    const panel = page.getByRole("region", { name: "Requests by class" });
    await panel.getByRole("row", { name: /^main 1 691 69% 0 0% 5$/ }).waitFor();
    await panel.getByRole("row", { name: /^2 rows 2 1,002 100% 0 0% 10$/ }).waitFor();
    const csv = await csvOf(page, "Requests by class");
    expect(csv).toContainEqual(["main", "", "1", "691", "0", "0", "5", "", "true"]);
    await page.getByLabel("Result").selectOption("5xx");
    await panel.getByText("No matching requests").waitFor();
    await panel.getByRole("button", { name: "Clear filters" }).click();
    await panel.getByRole("link", { name: "compaction" }).click();
    await page.waitForURL("**/requests?class=compaction");
    await page.locator("tr[data-row]").first().waitFor();
    expect(await page.locator("tr[data-row]").count()).toBe(1);
    // With more than one filter, and back.
    await page.getByLabel("Group by").selectOption("API key");
    await page.getByRole("region", { name: "Requests by API key" }).getByRole("link", { name: "engineers" }).click();
    await page.waitForURL("**/requests?key=1&class=compaction");
    await page.goBack();
    await page.getByRole("region", { name: "Requests by API key" }).waitFor();
  });

  test("Settings says which rules would have helped whom", async () => {
    await using page = await console.visit("/settings");
    const note = page.getByRole("note").filter({ hasText: "claude-cli/2.1.332" });
    await note
      .getByText(/^Of 2 requests of claude-cli\/2.1.332, 2 may have been read anew .* For vLLM, the rules/)
      .waitFor();
    await note.getByRole("link", { name: "What agents send" }).waitFor();
  });

  test("the group of a client says that little of its input came from a cache, and the rules that mend it", async () => {
    await using page = await console.visit("/nowhere");
    await page.route("**/api/requests/groups?*", async (route) => {
      const response = await route.fetch();
      const body = (await response.json()) as { rows: object[]; total: object };
      const sums = { request_count: 1200, prompt_tokens: 48_000_000, from_cache_tokens: 900_000 };
      Object.assign(body.rows[0] ?? {}, sums);
      await route.fulfill({ response, json: { ...body, total: { ...body.total, ...sums } } });
    });
    await page.goto(`${console.program.adminUrl}/requests?group=program`);
    const note = page.getByRole("region", { name: "Requests by client program" }).getByRole("note");
    await note.getByText("1.9% of the input of claude-cli came from a cache.").waitFor();
    await note.getByText("set CLIENT_RULES to auto, or add drop_billing_line and system_turns_to_user").waitFor();
    await page.getByLabel("Group by").selectOption("API key");
    await note.waitFor({ state: "detached" });
  });

  test.each([["/requests?group=class", "Requests by class"]])(
    "many groups with long names fit a screen and a phone, and have no axe violations: %s",
    async (path, title) => {
      await using page = await console.visit("/login");
      const name = "a-very-long-name-without-a-place-to-break".repeat(2);
      // Axe looks at each row anew, and they are alike.
      let rowCount = 12;
      await page.route("**/api/requests/groups?*", async (route) => {
        const response = await route.fetch();
        const body = (await response.json()) as { rows: object[]; total: object };
        const sums = {
          prompt_tokens: 123_456_789_012,
          from_cache_tokens: 98_765_432_109,
          lost_count: 31,
          cost: 1234.5,
        };
        const rows = Array.from({ length: rowCount }, (_, at) => ({ ...body.rows[0], ...sums, name: `${name}${at}` }));
        const total = { ...body.total, ...sums };
        await route.fulfill({ response, json: { ...body, rows, total, group_count: 300, currency: "EUR" } });
      });
      const screens = [
        { width: 1280, colorScheme: "light" },
        { width: 390, colorScheme: "dark" },
      ] as const;
      await page.goto(`${console.program.adminUrl}${path}`);
      const panel = page.getByRole("region", { name: title });
      await panel.getByText("Of 300 groups, these 12 have most input.").waitFor();
      for (const { width, colorScheme } of screens) {
        await page.setViewportSize({ width, height: 800 });
        await page.emulateMedia({ colorScheme });
        expect(await violations(page, "main")).toEqual([]);
      }
      rowCount = 200;
      await page.reload();
      await panel.getByText("Of 300 groups, these 200 have most input.").waitFor();
      for (const { width, colorScheme } of screens) {
        await page.setViewportSize({ width, height: 800 });
        await page.emulateMedia({ colorScheme });
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect([width, overflow <= 0]).toEqual([width, true]);
        const figures = panel.locator(".cards-on-phone td.number");
        const cut = await figures.evaluateAll(
          (all) => all.filter((cell) => cell.scrollWidth > cell.clientWidth).length,
        );
        expect([width, cut]).toEqual([width, 0]);
        // The button for more of them.
        expect(await violations(page, "main .table-foot")).toEqual([]);
      }
      // The next rows come before their button is in view.
      await panel.getByRole("rowheader", { name: `${name}99` }).scrollIntoViewIfNeeded();
      await panel.getByRole("rowheader", { name: `${name}199` }).waitFor();
    },
  );

  test("the holder of the key sees its last requests with their ids", async () => {
    await using page = await console.visit("/me", { anonymous: true });
    await page.getByLabel("API key", { exact: true }).fill(key);
    await page.getByRole("button", { name: "Show my limits and usage" }).click();
    const row = page.getByRole("row").filter({ hasText: "second-request" });
    await row.getByText("claude-cli/2.1.332 · compaction").waitFor();
    await page.getByText("From the cache this month").waitFor();
    expect(await page.getByRole("row").filter({ hasText: "first-request" }).count()).toBe(1);
  });

  test("the holder of the key reads and copies a whole request id, also on a phone or a tablet", async () => {
    const requestId = crypto.randomUUID();
    const response = await fetch(`${console.program.url}/v1/models`, {
      headers: { "x-api-key": key, "x-request-id": requestId },
    });
    await response.text();
    await using page = await console.visit("/me", { anonymous: true, phone: true });
    await page.getByLabel("API key", { exact: true }).fill(key);
    await page.getByRole("button", { name: "Show my limits and usage" }).click();
    const cell = page.locator("td").filter({ hasText: requestId });
    await cell.waitFor();
    expect(await cell.evaluate((element) => element.scrollWidth - element.clientWidth)).toBe(0);
    await cell.getByRole("button", { name: "Copy the request id" }).click();
    await cell.getByText("Copied").waitFor();
    await page.setViewportSize({ width: 768, height: 1024 });
    // On one line.
    expect((await cell.locator("code").boundingBox())?.height).toBeLessThan(30);
  });
});
