import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { openAccountMenu } from "./support/menus.ts";
import { violationsInBothSchemes } from "./support/axe.ts";
import { hasBrowser } from "./support/console-under-test.ts";
import { longName, pagePaths, startSeededConsole, waitUntilDrawn, waitUntilLoaded } from "./support/seeded-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("layout", () => {
  const console = shared(() => startSeededConsole());

  /** The elements whose text does not fit, as their `text-overflow` and `display`. */
  const cutOff = (page: Page, selector: string): Promise<string[]> =>
    page.evaluate(
      (selected) =>
        [...document.querySelectorAll(selected)]
          .filter((element) => element.scrollWidth > element.clientWidth)
          .map((element) => `${getComputedStyle(element).textOverflow} ${getComputedStyle(element).display}`),
      selector,
    );

  const isForAnyone = (path: string): boolean => path === "/login" || path === "/me";

  const phonePaths = [...pagePaths, "/keys?new=1", "/keys/2"];
  test.each(phonePaths)("%s fits phones of any width without horizontal scrolling", async (path) => {
    await using page = await console.visit(path, { phone: true, anonymous: isForAnyone(path) });
    await waitUntilLoaded(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    for (const width of [360, 320]) {
      await page.setViewportSize({ width, height: 640 });
      await waitUntilLoaded(page);
      // A chart gets its new width a frame after the page.
      await page.waitForFunction((wanted) => document.documentElement.scrollWidth === wanted, width);
      expect(await page.evaluate(() => document.querySelector(".side")?.scrollWidth)).toBeOneOf([width, undefined]);
    }
    if (path === "/keys") expect(await page.getByRole("button", { name: "Menu of admin" }).isVisible()).toBe(true);
    // 1280 by 800 at four times its size (WCAG 1.4.10): what stays while the page scrolls leaves most of the screen to it.
    await page.setViewportSize({ width: 320, height: 200 });
    await page.evaluate(() => window.scrollTo({ top: document.body.scrollHeight }));
    await waitUntilDrawn(page);
    expect(await page.evaluate(listCovering)).toEqual([]);
  });

  // Each opens the pages once, so that the widths cost one load.
  test.each(pagePaths)(
    "%s fits tablets and small windows, with targets and labels that can be told apart, and has no axe violations",
    async (path) => {
      await using page = await console.visit(path, { anonymous: isForAnyone(path) });
      for (const width of [768, 820, 1024, 1100, 1180, 1220]) {
        await page.setViewportSize({ width, height: 900 });
        await waitUntilLoaded(page);
        await waitUntilDrawn(page);
        expect([width, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([width, width]);
        expect([width, await cutOff(page, ".table-scroll")]).toEqual([width, []]);
        expect([width, await cutOff(page, ".figure .note, .figure .note > *")]).toEqual([width, []]);
        expect(await page.evaluate(listCrowdedTargets)).toEqual([]);
        expect(await page.evaluate(listCrowdedLabels)).toEqual([]);
      }
      expect(await violationsInBothSchemes(page)).toEqual([]);
      const background = (): Promise<string> =>
        page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
      const dark = await background();
      await page.emulateMedia({ colorScheme: "light" });
      expect(await background()).not.toBe(dark);
    },
  );

  test("a dialog can be used at a zoom of 400 %", async () => {
    await using page = await console.visit("/keys?new=1");
    await page.setViewportSize({ width: 320, height: 200 });
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("zoomed");
    for (const name of ["Cancel", "Create key"]) {
      const button = dialog.getByRole("button", { name });
      await button.scrollIntoViewIfNeeded();
      const { x, y, width, height } = (await button.boundingBox()) ?? { x: -1, y: -1, width: 0, height: 0 };
      expect([x >= 0, y >= 0, x + width <= 320, y + height <= 200]).toEqual([true, true, true, true]);
    }
  });

  test.each(["/usage", "/", "/keys/1", "/requests/latency"])(
    "%s prints in ink on white, in full, without what is pressed",
    async (path) => {
      await using page = await console.visit(path, { scheme: "dark" });
      await page.locator(".chart path.fill").first().waitFor({ state: "attached" });
      await waitUntilLoaded(page);
      // A4 between its margins.
      await page.setViewportSize({ width: 688, height: 970 });
      await page.emulateMedia({ media: "print", colorScheme: "dark" });
      for (const selector of ["nav", "main .button", "main [type=radio]", ".icon-button"]) {
        const shown = page.locator(selector).filter({ visible: true });
        expect([selector, await shown.count()]).toEqual([selector, 0]);
      }
      expect(await page.getByRole("heading", { level: 1 }).isVisible()).toBe(true);
      expect(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)).toMatch(
        /^(white|rgb\(255)/,
      );
      expect(
        await page.locator("main").evaluate((main) => [main.getBoundingClientRect().left, main.clientWidth]),
      ).toEqual([0, 688]);
      expect(await page.evaluate(listBeyondPaper)).toEqual([]);
    },
  );

  test("a phone shows long names of the overview in full, or with an ellipsis", async () => {
    await using page = await console.visit("/", { phone: true });
    await page.route("**/api/overview", async (route) => {
      const response = await route.fetch();
      const near = [{ kind: "key", id: 1, name: longName, used: 9, limit: 10, unit: "tokens per month" }];
      await route.fulfill({ response, json: { ...((await response.json()) as object), near_limit: near } });
    });
    await page.reload();
    await page.getByRole("link", { name: longName }).waitFor();
    expect(new Set(await cutOff(page, ".list .name, .list .name > *"))).toEqual(new Set(["ellipsis block"]));
    await page.getByRole("radio", { name: "Top 5" }).check();
    await page.locator(".chart-legend").getByText(longName).waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  });

  test("a phone shows the tab of its page in full", async () => {
    await using page = await console.visit("/help/explain", { phone: true });
    const beyond = (): Promise<number> =>
      page.locator(".tabs [aria-current]").evaluate((tab) => {
        const [{ right }, whole] = [tab.getBoundingClientRect(), tab.parentElement?.getBoundingClientRect()];
        return Math.max(0, Math.round(right - (whole?.right ?? 0)));
      });
    expect(await beyond()).toBe(0);
    await page.getByRole("link", { name: "Quick start" }).click();
    await page.getByRole("heading", { level: 1, name: "Quick start" }).waitFor();
    await page.setViewportSize({ width: 320, height: 640 });
    await page.getByRole("link", { name: "Explain a request" }).click();
    await page.getByRole("heading", { level: 1, name: "Explain a request" }).waitFor();
    expect(await beyond()).toBe(0);
  });

  test("a phone shows the sums of usage in full", async () => {
    await using page = await console.visit("/usage", { phone: true });
    // As many tokens as a busy year has.
    await page.route("**/api/usage/costs*", async (route) => {
      const response = await route.fetch();
      const { rows, total, ...body }: { rows: object[]; total: object } = await response.json();
      const large = { request_count: 12_345_678, prompt_tokens: 1_234_567_890, output_tokens: 987_654_321 };
      const all = rows.map((row) => Object.assign(row, large));
      await route.fulfill({ response, json: { ...body, rows: all, total: { ...total, ...large } } });
    });
    await page.reload();
    const totals = page.getByRole("region", { name: "Usage and cost" }).locator("tfoot td");
    await totals
      .filter({ hasText: /\d,\d{3},\d{3},\d{3}$/ })
      .first()
      .waitFor();
    expect(await cutOff(page, ".sums td.number")).toEqual([]);
  });

  test("a phone shows a key's row as a card with a label for each figure", async () => {
    await using page = await console.visit("/keys", { phone: true });
    const cell = page.getByRole("row").filter({ hasText: "alpha" }).locator("td[data-label=Requests]");
    await cell.waitFor();
    const label = await cell.evaluate((element) => getComputedStyle(element, "::before").content);
    expect(label).toContain("Requests");
    await page.getByRole("switch", { name: "alpha is active" }).tap();
    await page.getByRole("switch", { name: "alpha is active", checked: false }).waitFor();
    await page.getByRole("navigation").getByRole("link", { name: "Usage" }).tap();
    await page.getByRole("heading", { name: "Usage", level: 1 }).waitFor();
  });

  test.each([1024, 1280, 1440])("the key table needs no scrolling at %p pixels, and cuts only names", async (width) => {
    await using page = await console.visit("/keys");
    await page.setViewportSize({ width, height: 800 });
    // As many tokens as a busy year has.
    await page.route("**/api/keys*", async (route) => {
      const response = await route.fetch();
      const keys: object[] = await response.json();
      const large = { total_request_count: 98_765_432, total_input_tokens: 987_654_321_098, total_output_tokens: 8e10 };
      await route.fulfill({ response, json: keys.map((key) => Object.assign(key, large)) });
    });
    await page.reload();
    const cell = page.getByRole("cell", { name: "988B" }).first();
    await cell.waitFor();
    expect(await cell.getAttribute("title")).toBe("987,654,321,098");
    expect(await cutOff(page, ".table-scroll")).toEqual([]);
    expect(await cutOff(page, ".keys :is(td, th), .keys td *")).toEqual([]);
    await page.getByRole("link", { name: longName }).waitFor();
    expect(
      await page
        .locator(".key-name")
        .first()
        .evaluate((element) => element.clientWidth),
    ).toBeGreaterThan(100);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
  });

  test("a long name in the table of usage is cut at its end", async () => {
    await using page = await console.visit("/usage?range=7d");
    await page.setViewportSize({ width: 1024, height: 800 });
    const name = page.getByRole("rowheader").getByRole("button", { name: longName });
    await name.waitFor();
    const beyond = await name.evaluate((link) => {
      const cell = link.closest("th")?.getBoundingClientRect();
      return link.getBoundingClientRect().right - (cell?.right ?? 0);
    });
    expect(beyond).toBeLessThanOrEqual(0);
  });

  test("the phone's header is as high on a short page as on a long one", async () => {
    await using short = await console.visit("/nowhere", { phone: true });
    await using long = await console.visit("/keys", { phone: true });
    const headerHeight = async (page: Page): Promise<number | undefined> =>
      (await page.locator(".side").boundingBox())?.height;
    expect(await headerHeight(short)).toBe(await headerHeight(long));
  });

  test("the chosen theme applies before the first paint of the next visit", async () => {
    await using page = await console.visit("/", { scheme: "light" });
    await openAccountMenu(page);
    await page.getByRole("radio", { name: "Dark theme" }).check();
    const background = (): Promise<string> =>
      page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const dark = await background();
    // The page's own script never arrives, so only a script that runs before the first paint can set the theme.
    await page.route("**/assets/*.js", () => {});
    await page.reload({ waitUntil: "commit" });
    await page.waitForFunction(() => document.readyState !== "loading");
    expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
    expect(await background()).toBe(dark);
    await page.unroute("**/assets/*.js");
    await page.reload();
    await openAccountMenu(page);
    await page.getByRole("radio", { name: "Auto theme" }).check();
    expect(await page.locator("html").getAttribute("data-theme")).toBeNull();
  });

  test("the theme follows in other tabs", async () => {
    await using page = await console.visit("/", { scheme: "light" });
    const context = page.context();
    const other = await context.newPage();
    await other.goto(`${console.program.adminUrl}/keys`);
    await openAccountMenu(other);
    await other.getByRole("radio", { name: "Dark theme" }).check();
    await page.locator("html[data-theme=dark]").waitFor({ state: "attached" });
    await openAccountMenu(page);
    await page.getByRole("radio", { name: "Dark theme", checked: true }).waitFor();
    await other.getByRole("radio", { name: "Auto theme" }).check();
    await page.locator("html:not([data-theme])").waitFor({ state: "attached" });
  });

  test.each(["/", "/keys", "/keys/1", "/usage", "/gpus", "/gpus/0", "/requests", "/settings"])(
    "%s has no visible layout shift while it loads",
    async (path) => {
      await using page = await console.visit(path, { fresh: true });
      await waitUntilLoaded(page);
      await page.addInitScript(() => {
        const shifts = { total: 0 };
        Reflect.set(globalThis, "shifts", shifts);
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) shifts.total += Number(Reflect.get(entry, "value"));
        }).observe({ type: "layout-shift", buffered: true });
      });
      // Each response arrives after the previous one is on the screen, as on a slow network.
      let previous: Promise<void> = Promise.resolve();
      await page.route("**/api/**", (route) => {
        const respond = async (): Promise<void> => {
          await waitUntilDrawn(page);
          const response = await route.fetch();
          await route.fulfill({ response });
        };
        // Fails for a refresh of the page that the reload leaves.
        previous = previous.then(respond).catch(() => {});
        return previous;
      });
      // A minute after its last sample, the seeded host is told to be silent, on every page.
      const calm = { states: [], past: [], unknown_since: null };
      await page.route("**/api/states", (route) => route.fulfill({ json: calm }));
      await page.reload();
      await page.getByRole("heading", { level: 1 }).waitFor();
      await waitUntilLoaded(page);
      // The routes stay: some pages ask for the states last, as late as here.
      await previous;
      await waitUntilDrawn(page);
      const total = await page.evaluate((): number => Reflect.get(globalThis, "shifts").total);
      await page.unrouteAll({ behavior: "wait" });
      // A tenth of what Web Vitals rate as good.
      expect(total).toBeLessThan(0.01);
    },
  );
});

/**
 * Targets under 24 px with others within 24 px around their centre (WCAG 2.5.8, which leaves out those within a line of
 * text). Runs in the page.
 */
function listCrowdedTargets(): string[] {
  const isSmall = ({ width, height }: DOMRect): boolean => width < 24 || height < 24;
  const targets = [...document.querySelectorAll<HTMLElement>("button:enabled, select, input:enabled, a, summary")]
    .filter(
      (element) =>
        element.checkVisibility({ visibilityProperty: true }) &&
        element.closest(".visually-hidden, .side nav") === null &&
        getComputedStyle(element).display !== "inline",
    )
    .map((element) => element.closest("label") ?? element);
  return [...new Set(targets)].flatMap((target) => {
    const box = target.getBoundingClientRect();
    if (box.width === 0 || !isSmall(box)) return [];
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const near = targets.find((other) => {
      if (other === target) return false;
      const its = other.getBoundingClientRect();
      const { left, right, top, bottom } = its;
      const gap = Math.hypot(Math.max(left - x, 0, x - right), Math.max(top - y, 0, y - bottom));
      const between = Math.hypot((left + right) / 2 - x, (top + bottom) / 2 - y);
      return gap < 12 || (isSmall(its) && between < 24);
    });
    const nameOf = (one: Element): string => one.getAttribute("aria-label") ?? one.textContent ?? "";
    return near === undefined ? [] : [`${innerWidth}: ${nameOf(target)} beside ${nameOf(near)}`];
  });
}

/** Labels of a chart's axis with less than 8 px between them. Runs in the page. */
function listCrowdedLabels(): string[] {
  return [...document.querySelectorAll("svg")].flatMap((chart) => {
    const labels = [...chart.querySelectorAll(".x-tick")].map((label) => ({
      text: label.textContent,
      box: label.getBoundingClientRect(),
    }));
    return labels.flatMap(({ text, box }, index) => {
      const next = labels[index + 1];
      return next !== undefined && next.box.left - box.right < 8 ? [`${innerWidth}: ${text} ${next.text}`] : [];
    });
  });
}

/** What is fixed to the screen and covers more than a quarter of it, but for a dialog. */
function listCovering(): string[] {
  return [...document.querySelectorAll("body *:not(dialog)")]
    .filter((element) => ["fixed", "sticky"].includes(getComputedStyle(element).position))
    .filter((element) => {
      const { width, height, top } = element.getBoundingClientRect();
      return top < innerHeight && top + height > 0 && width * height > (innerWidth * innerHeight) / 4;
    })
    .map((element) => element.outerHTML.slice(0, 80));
}

/** Tables and charts that the paper cuts off. */
function listBeyondPaper(): string[] {
  return [...document.querySelectorAll("table, .chart > svg, .figures")]
    .filter((element) => element.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map((element) => element.outerHTML.slice(0, 80));
}
