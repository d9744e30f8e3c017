import { beforeAll, describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { chooseFrom } from "./support/menus.ts";
import { violations } from "./support/axe.ts";
import { pollUntil } from "../support/poll-until.ts";
import { downloadOf, hasBrowser, setVisible } from "./support/console-under-test.ts";
import { waitUntilDrawn } from "./support/seeded-console.ts";
import { startTrafficConsole, trafficModel, waitForLog } from "./support/traffic-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("requests", () => {
  const traffic = shared(() => startTrafficConsole());
  beforeAll(async () => {
    await traffic.chat({ stream: true });
    await traffic.chat({}, "status=500");
    await traffic.chat({}, "tokens=1", "no-such-key");
    await waitForLog(traffic, 3);
  });

  const visit = (path: string, options = {}) => traffic.console.visit(path, options);
  const rows = (page: Page): Locator => page.getByRole("region", { name: "Requests" }).locator("tbody tr[data-row]");
  const drawer = (page: Page): Locator => page.getByRole("dialog");
  const listed = async (): Promise<{ id: number; request_id: string }[]> =>
    (
      await traffic.console.admin.expectOk<{ requests: { id: number; request_id: string }[] }>(
        "GET",
        "/api/requests?limit=200",
      )
    ).requests;
  const shownIds = (page: Page): Promise<number[]> =>
    rows(page)
      .getByRole("button")
      .evaluateAll((buttons) => buttons.map((button) => Number(button.getAttribute("data-request"))));
  /** Sends requests and waits until the log has them. @returns the ids in the log, newest first */
  const chatTimes = async (times: number): Promise<number[]> => {
    const before = (await listed()).length;
    for (let sent = 0; sent < times; sent++) await traffic.chat();
    await waitForLog(traffic, before + times);
    return (await listed()).map(({ id }) => id);
  };
  const rowOf = (page: Page, id: number | undefined): Locator => page.locator(`[data-request="${id}"]`);
  /** Pages of two requests. */
  const shortenPages = (page: Page): Promise<unknown> =>
    page.route(/\/api\/requests\?/, async (route) => {
      const address = new URL(route.request().url());
      address.searchParams.set("limit", "2");
      await route.fulfill({ response: await route.fetch({ url: address.toString() }) });
    });

  test("the table lists what ended, newest first, with its result", async () => {
    await using page = await visit("/requests");
    await rows(page).nth(2).waitFor();
    expect(await rows(page).first().locator(".badge").textContent()).toMatch(/^401 /);
    expect(await rows(page).nth(1).locator(".badge").textContent()).toMatch(/^500/);
    expect(await rows(page).nth(2).locator(".badge").textContent()).toBe("200");
    expect(await rows(page).nth(2).textContent()).toContain(trafficModel);
  });

  test("what was estimated, or cut and not counted, is told apart from counts", async () => {
    await using page = await visit("/login");
    await page.route(/\/api\/requests\?/, async (route) => {
      const response = await route.fetch();
      const body = (await response.json()) as { requests: object[] };
      Object.assign(body.requests[1] ?? {}, { estimated_tokens: 1234, output_tokens: 0, sends: 2 });
      Object.assign(body.requests[2] ?? {}, { uncounted: true, output_tokens: 0 });
      await route.fulfill({ response, json: body });
    });
    await page.goto(`${traffic.console.program.adminUrl}/requests`);
    await rows(page).nth(2).waitFor();
    expect(await rows(page).nth(1).textContent()).toContain("≈ 1,234");
    expect(await rows(page).nth(2).textContent()).toContain("cut, not counted");
    await rows(page).nth(1).click();
    await drawer(page).getByText("It was sent 2 times.").waitFor();
    expect(await drawer(page).textContent()).toContain("were charged 1,234 by an estimate");
  });

  test("the filters are part of the address, survive a reload and can be cleared", async () => {
    await using page = await visit("/requests");
    await page.getByLabel("Result").selectOption("5xx");
    await page.waitForURL("**/requests?result=5xx");
    await rows(page).nth(1).waitFor({ state: "detached" });
    await page.getByLabel("API key").selectOption({ label: "caller" });
    await page.waitForURL(`**/requests?result=5xx&key=${traffic.key.id}`);
    await page.reload();
    await rows(page).first().waitFor();
    expect(await rows(page).count()).toBe(1);
    await chooseFrom(page, "Add a filter", "Model");
    await page.keyboard.insertText("no-such-model-or-is-it-a-key");
    await page.getByText("No matching requests").waitFor();
    expect(new URL(page.url()).search).toBe(`?result=5xx&key=${traffic.key.id}`);
    await page.getByRole("button", { name: "Clear filters" }).click();
    await rows(page).nth(2).waitFor();
    expect(new URL(page.url()).search).toBe("");
    expect(await page.getByLabel("Model", { exact: true }).inputValue()).toBe("");
  });

  test("a link with filters that mean nothing shows all requests", async () => {
    await using page = await visit("/requests?key=abc&result=%3Cscript%3E&slower=soon&since=never");
    await rows(page).nth(2).waitFor();
  });

  test("one request opens with its timeline, tokens and what was changed, by keyboard, and closes to its row", async () => {
    await using page = await visit("/requests?result=2xx");
    const button = rows(page).last().getByRole("button");
    await button.focus();
    await page.keyboard.press("Enter");
    await drawer(page).getByText("Timeline").waitFor();
    expect(await drawer(page).locator(".timeline li").count()).toBe(4);
    await drawer(page).getByText("Model name", { exact: true }).waitFor();
    await drawer(page).getByText(`claude-asked → ${trafficModel}`).waitFor();
    expect(await drawer(page).textContent()).toContain("test-client/1");
    expect(await violations(page)).toEqual([]);
    const address = page.url();
    await page.keyboard.press("Escape");
    await drawer(page).waitFor({ state: "detached" });
    expect(await button.evaluate((element) => element === document.activeElement)).toBe(true);
    await page.goto(address);
    await drawer(page).getByText("Timeline").waitFor();
    await drawer(page).getByRole("link", { name: trafficModel }).click();
    await page.waitForURL(`**/requests?model=${trafficModel}`);
    await drawer(page).waitFor({ state: "detached" });
  });

  test("a refused request has one phase, and its error code", async () => {
    await using page = await visit("/requests?result=refused");
    await rows(page).first().click();
    await drawer(page).getByText("invalid_api_key", { exact: true }).waitFor();
    expect(await drawer(page).locator(".timeline li").count()).toBe(1);
    await drawer(page).getByText("Refused: invalid_api_key.").waitFor();
    // Of what was not sent, nothing is to be reported.
    for (const missing of ["Tokens", "What was changed"]) {
      expect(await drawer(page).getByRole("heading", { name: missing }).count()).toBe(0);
    }
  });

  test("the story of a request says what it waited for, how it was answered, and which limit refused it", async () => {
    const limits = { max_concurrency: 1, requests_per_minute: 3 };
    const streamed = { stream: true, stream_options: { include_usage: true } };
    const { key, id } = await traffic.console.admin.createKey("narrow", limits);
    await Promise.all([0, 1].map(() => traffic.chat(streamed, "usage=40,7; slow-head=200ms", key)));
    for (const _ of [2, 3]) await traffic.chat({}, "usage=40,7", key);
    await waitForLog(traffic, 4, `&key_id=${id}`);
    await using page = await visit(`/requests?key=${id}`);
    const storyOf = async (row: number): Promise<string> => {
      await rows(page).nth(row).click();
      const story = (await drawer(page).locator(".lead").textContent()) ?? "";
      await page.keyboard.press("Escape");
      await drawer(page).waitFor({ state: "detached" });
      return story;
    };
    expect(await storyOf(0)).toStartWith(
      "Refused by a limit: This API key is limited to 3 requests per minute; try again in",
    );
    expect(await storyOf(1)).toMatch(/^127\.0\.0\.1:\d+ began to answer after .* and wrote 7 tokens\./);
    expect(await storyOf(2)).toMatch(
      /^Waited \d+ ms because this key may run 1 at once\. .* began to answer after .* and wrote 7 tokens/,
    );
  });

  test("new requests appear by themselves, and wait while the table is paused", async () => {
    await using page = await visit("/requests?result=2xx");
    await page.getByText("Live", { exact: true }).waitFor();
    await rows(page).first().waitFor();
    const before = await rows(page).count();
    await traffic.chat({}, "status=404");
    await traffic.chat();
    await rows(page).nth(before).waitFor();
    expect(await rows(page).count()).toBe(before + 1);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("Paused", { exact: true }).waitFor();
    await traffic.chat();
    await page.getByRole("button", { name: "Resume (1 new request)" }).waitFor();
    expect(await rows(page).count()).toBe(before + 1);
    await page.getByRole("button", { name: "Resume" }).click();
    await rows(page)
      .nth(before + 1)
      .waitFor();
  });

  test("the table pauses while its first rows are above the screen, says so, and goes on at its top", async () => {
    await chatTimes(12);
    await using page = await visit("/requests");
    await page.setViewportSize({ width: 1280, height: 400 });
    await page.getByText("Live", { exact: true }).waitFor();
    await rows(page).nth(11).waitFor();
    const read = rows(page).nth(11);
    await read.scrollIntoViewIfNeeded();
    await page.evaluate(() => window.scrollTo({ top: document.body.scrollHeight }));
    await page.getByText("Paused while you read").waitFor();
    const before = await shownIds(page);
    const top = await read.evaluate((row) => row.getBoundingClientRect().top);
    const [newest] = await chatTimes(1);
    const goOn = page.getByRole("button", { name: "Show 1 new request" });
    await goOn.waitFor();
    expect(await goOn.evaluate((button) => button.getBoundingClientRect().top)).toBeGreaterThanOrEqual(0);
    expect(await shownIds(page)).toEqual(before);
    expect(await read.evaluate((row) => row.getBoundingClientRect().top)).toBe(top);
    expect(await violations(page)).toEqual([]);
    await goOn.click();
    await rowOf(page, newest).waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await goOn.waitFor({ state: "detached" });
    // Asked for, a pause outlasts the way back to the top.
    await page.getByRole("button", { name: "Pause" }).click();
    await page.evaluate(() => window.scrollTo({ top: document.body.scrollHeight }));
    await page.evaluate(() => window.scrollTo({ top: 0 }));
    await waitUntilDrawn(page);
    await page.getByText("Paused", { exact: true }).waitFor();
  });

  test("the model field suggests the models of the last days", async () => {
    await using page = await visit("/requests");
    await chooseFrom(page, "Add a filter", "Model");
    const field = page.getByLabel("Model", { exact: true });
    const suggested = page.locator("datalist option");
    await suggested.first().waitFor({ state: "attached" });
    expect(await suggested.evaluateAll((options) => options.map((option) => option.getAttribute("value")))).toEqual([
      trafficModel,
    ]);
    expect(await field.getAttribute("list")).toBe(await page.locator("datalist").getAttribute("id"));
  });

  test("a paused table stays as it is while the page is hidden and shown again", async () => {
    await using page = await visit("/requests");
    await page.getByText("Live", { exact: true }).waitFor();
    const [first] = await chatTimes(1);
    await rowOf(page, first).waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    const comeBack = async (): Promise<void> => {
      const read = page.waitForResponse(/\/api\/requests\?/);
      await setVisible(page, true);
      await (await read).finished();
      await waitUntilDrawn(page);
    };
    const before = await shownIds(page);
    await setVisible(page, false);
    await comeBack();
    await page.getByRole("button", { name: "Resume", exact: true }).waitFor();
    await setVisible(page, false);
    const [missed] = await chatTimes(1);
    await comeBack();
    await page.getByRole("button", { name: "Resume (1 new request)" }).waitFor();
    expect(await shownIds(page)).toEqual(before);
    await page.getByRole("button", { name: "Resume" }).click();
    await rowOf(page, missed).waitFor();
  });

  test("a paused table reads the log again after the pause if more than a page has ended", async () => {
    await using page = await visit("/requests");
    await shortenPages(page);
    await page.reload();
    await page.getByText("Live", { exact: true }).waitFor();
    await rows(page).nth(1).waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    const before = await shownIds(page);
    await setVisible(page, false);
    const ids = await chatTimes(3);
    const asked: string[] = [];
    page.on("request", (request) => {
      if (request.url().includes("/api/requests?")) asked.push(request.url());
    });
    const read = page.waitForResponse(/\/api\/requests\?/);
    await setVisible(page, true);
    await (await read).finished();
    await waitUntilDrawn(page);
    expect(asked).toHaveLength(1);
    expect(await shownIds(page)).toEqual(before);
    await page.getByRole("button", { name: "Resume" }).click();
    await rowOf(page, ids[0]).waitFor();
    expect(await shownIds(page)).toEqual(ids.slice(0, 2));
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });

  test("a live table keeps the focus on its row", async () => {
    await using page = await visit("/requests?result=2xx");
    await page.getByText("Live", { exact: true }).waitFor();
    const button = rows(page).first().getByRole("button");
    await button.focus();
    const id = await button.getAttribute("data-request");
    const before = await rows(page).count();
    await traffic.chat();
    await rows(page).nth(before).waitFor();
    expect(await page.evaluate(() => document.activeElement?.getAttribute("data-request"))).toBe(id);
  });

  test("the CSV holds the rows of the table, for Excel too", async () => {
    await using page = await visit("/requests?result=5xx");
    await rows(page).first().waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "CSV" }).click(),
    ]);
    const bytes = await Bun.file(await download.path()).bytes();
    expect([...bytes.subarray(0, 3)]).toEqual([0xef, 0xbb, 0xbf]);
    const lines = new TextDecoder().decode(bytes).trimEnd().split("\r\n");
    expect(lines[0]).toStartWith("ended_at,request_id,key_id,key_name,");
    expect(lines).toHaveLength(2);
    expect(lines[1]).toContain(",caller,");
  });

  test("of two requests with the same request id, the clicked one opens, also after a reload", async () => {
    const headers = { "x-request-id": "a-repeated-id" };
    await traffic.chat({}, "status=500", traffic.key.key, headers);
    await waitForLog(traffic, 1, "&request_id=a-repeated-id");
    await traffic.chat({}, "tokens=5", traffic.key.key, headers);
    await waitForLog(traffic, 2, "&request_id=a-repeated-id");
    await using page = await visit("/requests?id=a-repeated-id");
    await rows(page).nth(1).click();
    const badge = drawer(page).locator(".badge");
    expect(await badge.textContent()).toMatch(/^500/);
    const address = page.url();
    await page.reload();
    expect(await badge.textContent()).toMatch(/^500/);
    // The table does not have the request, so it is read by itself.
    await page.goto(address.replace("id=a-repeated-id", "result=2xx"));
    expect(await badge.textContent()).toMatch(/^500/);
    await page.keyboard.press("Escape");
    await drawer(page).waitFor({ state: "detached" });
    await page.waitForURL("**/requests?result=2xx");
    await page.goto(address.replace(/&row=\d+/, ""));
    expect(await badge.textContent()).toBe("200");
  });

  test("the end of the log is named once it is reached, not while it loads", async () => {
    await using page = await visit("/requests/running");
    const held = Promise.withResolvers<void>();
    await page.route(/\/api\/requests\?/, async (route) => {
      await held.promise;
      await route.continue();
    });
    await page.getByRole("link", { name: "Log", exact: true }).click();
    const table = page.getByRole("region", { name: "Requests" });
    await table.locator(".skeleton").first().waitFor();
    expect(await table.textContent()).not.toContain("These are all.");
    held.resolve();
    await table.getByText("These are all.").waitFor();
  });

  test("no request is missing between others after more than a page ended while the page was hidden", async () => {
    await using page = await visit("/requests");
    await shortenPages(page);
    await page.reload();
    await page.getByText("Live", { exact: true }).waitFor();
    const [seenLast] = await chatTimes(2);
    await rowOf(page, seenLast).waitFor();
    await setVisible(page, false);
    const ids = await chatTimes(4);
    await setVisible(page, true);
    await rowOf(page, ids[0]).waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await rowOf(page, seenLast).waitFor({ state: "detached" });
    const shown = await shownIds(page);
    expect(shown).toEqual(ids.slice(0, shown.length));
    for (const older of [ids[2], ids[4]]) {
      await page.getByRole("button", { name: "Load older requests" }).click();
      await rowOf(page, older).waitFor();
    }
    expect(await shownIds(page)).toEqual(ids.slice(0, 6));
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });

  test("what ended while the page was hidden is listed although the first attempt to read it fails", async () => {
    await using page = await visit("/requests", { expectedErrors: /ERR_FAILED/ });
    await page.getByText("Live", { exact: true }).waitFor();
    await setVisible(page, false);
    const [missed] = await chatTimes(1);
    await page.route(/\/api\/requests\?/, (route) => route.abort(), { times: 1 });
    await setVisible(page, true);
    await rowOf(page, missed).waitFor();
  });

  test("no request is missing although another one ends while the log is read again", async () => {
    await using page = await visit("/requests");
    await page.getByText("Live", { exact: true }).waitFor();
    await rows(page).first().waitFor();
    await setVisible(page, false);
    await chatTimes(3);
    const [read, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await page.route(/\/api\/requests\?/, async (route) => {
      const address = new URL(route.request().url());
      if (address.searchParams.has("after")) {
        // Short of what has ended.
        address.searchParams.set("limit", "2");
        await route.fulfill({ response: await route.fetch({ url: address.toString() }) });
        return;
      }
      const response = await route.fetch();
      read.resolve();
      await held.promise;
      await route.fulfill({ response });
    });
    await setVisible(page, true);
    await read.promise;
    const ids = await chatTimes(1);
    held.resolve();
    await rowOf(page, ids[0]).waitFor();
    expect((await shownIds(page)).slice(0, 5)).toEqual(ids.slice(0, 5));
  });

  test("a hidden tab asks for nothing, and shows what it has missed when it is seen again", async () => {
    await using page = await visit("/requests", { fakeClock: true });
    const polls: string[] = [];
    page.on("request", (request) => void (request.url().includes("after=") && polls.push(request.url())));
    await page.getByText("Live", { exact: true }).waitFor();
    await page.clock.runFor(1000);
    await pollUntil(() => polls.length > 0);
    await setVisible(page, false);
    const before = polls.length;
    const [missed] = await chatTimes(1);
    await page.clock.runFor(60_000);
    await waitUntilDrawn(page);
    expect(polls).toHaveLength(before);
    await setVisible(page, true);
    await rowOf(page, missed).waitFor();
  });

  test("a request that becomes visible after others with higher ids is listed, on the first page too", async () => {
    await using page = await visit("/requests");
    const late = "late-in-the-log";
    let isVisible = false;
    await page.route(/\/api\/requests\?/, async (route) => {
      const response = await route.fetch();
      const body = (await response.json()) as { requests: { request_id: string }[] };
      const hasHigher = body.requests.findIndex(({ request_id: id }) => id === late) > 0;
      const json = isVisible ? body : { ...body, requests: body.requests.filter(({ request_id: id }) => id !== late) };
      // The first answer that has one with a higher id is the last without it.
      isVisible ||= hasHigher;
      await route.fulfill({ response, json });
    });
    await traffic.chat({}, "tokens=5", traffic.key.key, { "x-request-id": late });
    const [, lateId] = await chatTimes(1);
    await rowOf(page, lateId).waitFor();
    isVisible = false;
    await page.reload();
    await rowOf(page, lateId).waitFor();
  });

  test("a request that the log corrects changes in the table, and the others keep theirs", async () => {
    await using page = await visit("/requests?result=2xx");
    await page.getByText("Live", { exact: true }).waitFor();
    const [corrected] = await chatTimes(1);
    await rowOf(page, corrected).waitFor();
    const other = rows(page).nth(1).getByRole("button");
    await other.focus();
    await page.route(/after=/, async (route) => {
      const response = await route.fetch();
      const body = (await response.json()) as { requests: { id: number }[] };
      Object.assign(body.requests.find(({ id }) => id === corrected) ?? {}, { output_tokens: 4321 });
      await route.fulfill({ response, json: body });
    });
    await rows(page).first().getByText("4,321").waitFor();
    expect(await other.evaluate((element) => element === document.activeElement)).toBe(true);
  });

  test("a failed load says why and offers to try again", async () => {
    await using page = await visit("/nowhere", { expectedErrors: /status of 500|ERR_/ });
    await page.route(/\/api\/requests/, (route) => route.fulfill({ status: 500, json: { error: "Internal error" } }));
    await page.goto(`${traffic.console.program.adminUrl}/requests`);
    await page.getByText("Could not be loaded", { exact: true }).waitFor();
    await page.unroute(/\/api\/requests/);
    await page.getByRole("alert").getByRole("button", { name: "Try again" }).click();
    await rows(page).first().waitFor();
  });

  test("the CSV holds all rows of the filter, also those that the table has yet to load", async () => {
    const get = (headers: Record<string, string> = {}) =>
      fetch(`${traffic.console.program.url}/v1/models/exported`, {
        headers: { "x-api-key": traffic.key.key, ...headers },
      });
    // More than two pages of the table, and than one of the API.
    for (let sent = 0; sent < 210; sent += 30) await Promise.all(Array.from({ length: 30 }, () => get()));
    await get({ "x-request-id": "last-exported" });
    await waitForLog(traffic, 1, "&request_id=last-exported");
    await using page = await visit("/requests?path=/v1/models/exported");
    await rows(page).nth(99).waitFor();
    const text = await downloadOf(page, () => page.getByRole("button", { name: "CSV" }).click());
    const lines = text.trimEnd().split("\r\n");
    expect(lines).toHaveLength(1 + 211);
    expect(new Set(lines).size).toBe(lines.length);
  });

  test("a log that is switched off says how to switch it on", async () => {
    await using page = await visit("/nowhere");
    await page.route(/\/api\/requests/, (route) =>
      route.fulfill({
        json: { requests: [], next_cursor: null, scanned_to: null, log: { days: 0, rows: 5_000_000 } },
      }),
    );
    await page.goto(`${traffic.console.program.adminUrl}/requests`);
    await page.getByText("The request log is switched off").waitFor();
    expect(await page.getByRole("button", { name: "Pause" }).count()).toBe(0);
  });

  test.each([
    [320, "light"],
    [390, "dark"],
    [1280, "light"],
  ] as const)("at %p pixels, %s, nothing is cut or scrolls sideways, and axe finds nothing", async (width, scheme) => {
    await using page = await visit("/requests", { scheme, phone: width < 720 });
    await page.setViewportSize({ width, height: 800 });
    await rows(page).first().waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    expect(await violations(page)).toEqual([]);
  });
});
