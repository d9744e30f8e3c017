import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { type ConsoleUnderTest, hasBrowser, startConsole } from "./support/console-under-test.ts";
import { reading, seed, seedKeys, usage } from "./support/seed.ts";

// Bun (1.4.5) forgets the preloaded default after the first file.
// Remove when a preloaded default holds for all files.
setDefaultTimeout(30_000);

const axe = readFileSync(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir), "utf8");
const pages = ["/", "/keys", "/usage", "/gpus", "/nowhere"];
const schemes = ["light", "dark"] as const;
const longName = `${"a-very-long-name-without-a-place-to-break".repeat(2)} 와 그 밖의 것들`;

describe.skipIf(!hasBrowser)("every page", () => {
  let console: ConsoleUnderTest;
  beforeAll(async () => {
    console = await startConsole((dataDir) =>
      seed(dataDir, async (store) => {
        const ids = await seedKeys(store, ["alpha", longName, "<i>beta</i>"]);
        await store.keys.update(ids[2] ?? 0, { isActive: false });
        const now = Math.floor(Date.now() / 60_000);
        const minutes = Array.from({ length: 300 }, (_, index) => now - index);
        await store.usage.add(ids.flatMap((id) => minutes.map((minute) => usage(id, minute, [3, 5000, 700]))));
        const stale = (now - 10) * 60_000;
        await store.gpu.add({
          keyId: ids[0] ?? 0,
          recordedAt: stale,
          readings: [reading(1, { name: longName.slice(0, 64) })],
        });
        await store.gpu.add({ keyId: ids[0] ?? 0, recordedAt: Date.now(), readings: [reading(0)] });
      }),
    );
  });
  afterAll(() => console[Symbol.asyncDispose]());

  const loaded = async (page: Page): Promise<void> => {
    await page.waitForFunction(() => document.querySelector(".skeleton") === null);
  };

  async function violations(page: Page): Promise<string[]> {
    await page.evaluate(axe);
    const results = await page.evaluate((): Promise<AxeResults> => Reflect.get(globalThis, "axe").run());
    return results.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`));
  }

  describe.each(schemes)("in %s", (scheme) => {
    test.each(["/login", ...pages])("%s has nothing that axe objects to", async (path) => {
      await using visit = await console.visit(path, { scheme, anonymous: path === "/login" });
      await loaded(visit.page);
      expect(await violations(visit.page)).toEqual([]);
    });

    test("neither have the dialogs", async () => {
      await using visit = await console.visit("/keys?new=1", { scheme });
      const { page } = visit;
      await page.getByRole("dialog").getByLabel("Name").fill("audited");
      expect(await violations(page)).toEqual([]);
      await page.getByRole("button", { name: "Create key" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Copy the key" }).click();
      await page.getByText("Copied").waitFor();
      expect(await violations(page)).toEqual([]);
      await page.getByRole("button", { name: "Done" }).click();
      await page.getByRole("button", { name: "Delete audited" }).last().click();
      expect(await violations(page)).toEqual([]);
      await page.getByRole("button", { name: "Delete key" }).click();
      await page.getByText("“audited” was deleted").waitFor();
      expect(await violations(page)).toEqual([]);
    });
  });

  test.each(["/login", ...pages])("%s fits a phone without scrolling sideways", async (path) => {
    await using visit = await console.visit(path, { phone: true, anonymous: path === "/login" });
    const { page } = visit;
    await loaded(page);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width).toBe(390);
  });

  test("a phone cuts no figure's note off, and a long name ends in an ellipsis", async () => {
    await using visit = await console.visit("/", { phone: true });
    const { page } = visit;
    await page.getByText("on yesterday by now").or(page.getByText("None yesterday by now")).first().waitFor();
    const cut = (selector: string): Promise<(string | null)[]> =>
      page.evaluate(
        (selected) =>
          [...document.querySelectorAll(selected)]
            .filter((element) => element.scrollWidth > element.clientWidth)
            .map((element) => `${getComputedStyle(element).textOverflow} ${getComputedStyle(element).display}`),
        selector,
      );
    expect(await cut(".figure .note")).toEqual([]);
    await page.getByRole("link", { name: longName }).waitFor();
    expect(new Set(await cut(".list .name, .list .name > *"))).toEqual(new Set(["ellipsis block"]));
  });

  test("a phone shows a key's row as a card, with the name of each figure", async () => {
    await using visit = await console.visit("/keys", { phone: true });
    const { page } = visit;
    const cell = page.getByRole("row").filter({ hasText: "alpha" }).locator("td[data-label=Requests]");
    await cell.waitFor();
    const shown = await cell.evaluate((element) => getComputedStyle(element, "::before").content);
    expect(shown).toContain("Requests");
    await page.getByRole("switch", { name: "alpha is active" }).tap();
    await page.getByRole("switch", { name: "alpha is active", checked: false }).waitFor();
    await page.getByRole("navigation").getByRole("link", { name: "Usage" }).tap();
    await page.getByRole("heading", { name: "Usage", level: 1 }).waitFor();
  });

  test("a chosen theme holds from before the first paint of the next visit", async () => {
    await using visit = await console.visit("/", { scheme: "light" });
    const { page } = visit;
    await page.getByRole("radio", { name: "Dark theme" }).check();
    const background = (): Promise<string> =>
      page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const dark = await background();
    // With the page's own script held back, only what runs before the first paint can have set it.
    await page.route("**/assets/*.js", () => {});
    await page.reload({ waitUntil: "commit" });
    await page.waitForFunction(() => document.readyState !== "loading");
    expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
    expect(await background()).toBe(dark);
    await page.unroute("**/assets/*.js");
    await page.reload();
    await page.getByRole("radio", { name: "Auto theme" }).check();
    expect(await page.locator("html").getAttribute("data-theme")).toBeNull();
  });

  test.each(["/", "/keys", "/usage", "/gpus"])("%s moves next to nothing while it loads", async (path) => {
    await using visit = await console.visit(path);
    const { page } = visit;
    await loaded(page);
    await page.addInitScript(() => {
      const shifts = { total: 0 };
      Reflect.set(globalThis, "shifts", shifts);
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) shifts.total += Number(Reflect.get(entry, "value"));
      }).observe({ type: "layout-shift", buffered: true });
    });
    // Answers one after another, as from far away.
    let answers = 0;
    await page.route("**/api/**", async (route) => {
      await Bun.sleep(50 * ++answers);
      await route.continue();
    });
    await page.reload();
    await loaded(page);
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    const total = await page.evaluate((): number => Reflect.get(globalThis, "shifts").total);
    // A tenth of what web vitals call good.
    expect(total).toBeLessThan(0.01);
  });

  test("shortcuts lead from page to page, and `?` lists them", async () => {
    await using visit = await console.visit("/");
    const { page } = visit;
    for (const [second, title] of [
      ["k", "API keys"],
      ["u", "Usage"],
      ["g", "GPUs"],
      ["o", "Overview"],
    ] as const) {
      await page.keyboard.press("g");
      await page.keyboard.press(second);
      await page.getByRole("heading", { name: title, level: 1 }).waitFor();
    }
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    // Under a dialog the page does not listen.
    await page.keyboard.press("n");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("n");
    await page.getByRole("dialog", { name: "New API key" }).waitFor();
  });

  test("letters typed into a field are no shortcuts", async () => {
    await using visit = await console.visit("/keys");
    const { page } = visit;
    await page.keyboard.press("/");
    await page.keyboard.type("gun?/");
    expect(await page.getByRole("searchbox").inputValue()).toBe("gun?/");
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  test("the keyboard skips to the page, and the address keeps what it holds", async () => {
    await using visit = await console.visit("/usage?range=7d");
    const { page } = visit;
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("main");
    expect(page.url()).toEndWith("/usage?range=7d");
  });

  test("a hidden tab asks the server nothing, and one that is seen again does", async () => {
    await using visit = await console.visit("/gpus", { ownClock: true });
    const { page } = visit;
    await page.getByRole("article", { name: "GPU 0, NVIDIA H200" }).waitFor();
    const show = (visible: boolean): Promise<void> =>
      page.evaluate((seen) => {
        Object.defineProperty(document, "visibilityState", { value: seen ? "visible" : "hidden", configurable: true });
        Object.defineProperty(document, "hidden", { value: !seen, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, visible);
    await show(false);
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.clock.runFor(120_000);
    expect(asked).toEqual([]);
    await show(true);
    const again = page.waitForRequest("**/api/gpu-stats");
    await page.clock.runFor(10_000);
    await again;
  });

  test("times are Seoul's, in full on hover", async () => {
    await using visit = await console.visit("/keys");
    const time = visit.page.getByRole("row").filter({ hasText: "alpha" }).locator("time");
    expect(await time.getAttribute("title")).toMatch(/^\d+ \w{3} \d{4}, \d\d:\d\d:\d\d KST$/);
    expect(await time.getAttribute("datetime")).toEndWith("+09:00");
  });

  test("how old the page is goes by the time that passed, not by a clock that is minutes off", async () => {
    await using visit = await console.visit("/keys", { ownClock: true });
    const { page } = visit;
    await page.getByText("Updated just now").waitFor();
    await page.clock.setSystemTime(Date.now() - 600_000);
    const refreshed = page.waitForResponse("**/api/keys");
    await page.getByRole("button", { name: "Refresh" }).click();
    await refreshed;
    await page.clock.runFor(2000);
    await page.getByText("Updated just now").waitFor();
    await page.clock.runFor(7000);
    await page.getByText(/^Updated \d s ago$/).waitFor();
  });

  test("what ticks is not read out", async () => {
    await using visit = await console.visit("/", { ownClock: true, provokes: /ERR_FAILED/ });
    const { page } = visit;
    await page.route("**/api/overview", (route) => route.abort());
    const spoken = (): Promise<string[]> =>
      page.evaluate(() =>
        [...document.querySelectorAll("[role=status], [role=alert]")].map((region) => {
          const copy = region.cloneNode(true) as Element;
          for (const silent of copy.querySelectorAll("[aria-live=off]")) silent.remove();
          return copy.textContent ?? "";
        }),
      );
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByRole("alert").getByText("The server does not answer.").waitFor();
    expect((await spoken()).filter((text) => /just now|ago/.test(text))).toEqual([]);
  });

  test("all script together is under 100 kB, compressed with gzip", async () => {
    const page = await (await fetch(console.program.adminUrl)).text();
    const scripts = [...page.matchAll(/src="([^"]+\.js)"/g)].map(([, path]) => path);
    expect(scripts.length).toBeGreaterThan(0);
    let bytes = 0;
    for (const path of scripts) {
      const headers = { "accept-encoding": "gzip" };
      const answer = await fetch(console.program.adminUrl + path, { headers, decompress: false });
      expect(answer.headers.get("content-encoding")).toBe("gzip");
      bytes += (await answer.bytes()).length;
    }
    expect(bytes).toBeLessThan(100_000);
  });
});
