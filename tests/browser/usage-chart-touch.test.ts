import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { hasBrowser } from "./support/console-under-test.ts";
import { chartOf, startUsageConsole, waitForBars } from "./support/usage-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("usage chart on a touch screen", () => {
  const console = shared(startUsageConsole);

  /** A position in the window, in tenths of the chart's plot. */
  async function pointIn(page: Page, tenths: number): Promise<{ x: number; y: number }> {
    await chartOf(page).scrollIntoViewIfNeeded();
    const box = await chartOf(page).boundingBox();
    if (box === null) throw new Error("The chart is not visible");
    return { x: box.x + 52 + ((box.width - 60) * tenths) / 10, y: box.y + 150 };
  }

  async function tap(page: Page, tenths: number): Promise<void> {
    const { x, y } = await pointIn(page, tenths);
    await page.touchscreen.tap(x, y);
  }

  async function swipe(page: Page, from: number, to: number): Promise<void> {
    const session = await page.context().newCDPSession(page);
    const [start, end] = [await pointIn(page, from), await pointIn(page, to)];
    const send = (type: "touchStart" | "touchMove" | "touchEnd", touchPoints: { x: number; y: number }[]) =>
      session.send("Input.dispatchTouchEvent", { type, touchPoints });
    await send("touchStart", [start]);
    for (const part of [0.25, 0.5, 0.75, 1]) {
      await send("touchMove", [{ x: start.x + (end.x - start.x) * part, y: start.y }]);
    }
    await send("touchEnd", []);
  }

  test("a tap shows the tooltip until the next tap, which moves it", async () => {
    await using page = await console.visit("/usage?range=6h", { phone: true });
    await waitForBars(page);
    const tooltip = chartOf(page).locator(".tooltip");
    await tap(page, 5);
    await tooltip.getByText("alpha").waitFor();
    const first = await tooltip.locator(".tooltip-time").textContent();
    // A finger that left the screen is over nothing.
    await page.waitForTimeout(300);
    expect(await tooltip.isVisible()).toBe(true);
    await tap(page, 6);
    await tooltip.getByText("alpha").waitFor();
    expect(await tooltip.locator(".tooltip-time").textContent()).not.toBe(first);
    await page.getByRole("heading", { name: "Usage", level: 1 }).tap();
    await tooltip.waitFor({ state: "hidden" });
  });

  test("a sideways drag moves the span by its length, and not the page", async () => {
    await using page = await console.visit("/usage?range=6h", { phone: true, fresh: true });
    await waitForBars(page);
    await swipe(page, 2, 7);
    await page.waitForURL(/from=.*&to=/);
    const parameters = new URL(page.url()).searchParams;
    const at = (name: string): number => Date.parse(`${parameters.get(name)}:00+09:00`);
    expect((at("to") - at("from")) / 3_600_000).toBeCloseTo(6, 0);
    // Half of six hours, to the bar.
    expect((Date.now() - at("to")) / 3_600_000).toBeWithin(2.5, 3.5);
    expect(await page.evaluate(() => scrollX)).toBe(0);
  });

  test("buttons zoom in and out", async () => {
    await using page = await console.visit("/usage?range=6h", { phone: true });
    await waitForBars(page);
    expect(await chartOf(page).getByRole("button", { name: "Zoom out" }).isDisabled()).toBe(true);
    await tap(page, 5);
    const panel = page.getByRole("region", { name: "Output tokens" });
    const sixHours = (await panel.getByText(/-minute bars/).innerText()).split(" · ", 1).join();
    await chartOf(page).getByRole("button", { name: "Zoom in" }).tap();
    await page.waitForURL(/from=.*&to=/);
    const hours = (): number => {
      const parameters = new URL(page.url()).searchParams;
      const at = (name: string): number => Date.parse(`${parameters.get(name)}:00+09:00`);
      return (at("to") - at("from")) / 3_600_000;
    };
    expect(hours()).toBeCloseTo(3, 0);
    // The buttons scale what is drawn, which is the six hours until the three have come.
    await panel.getByText(`${sixHours} · `).waitFor({ state: "detached" });
    const zoomed = page.url();
    await chartOf(page).getByRole("button", { name: "Zoom out" }).tap();
    await page.waitForURL((url) => url.href !== zoomed);
    expect(hours()).toBeCloseTo(6, 0);
  });

  test("a mouse needs no buttons for it", async () => {
    await using page = await console.visit("/usage?range=6h");
    await waitForBars(page);
    expect(await chartOf(page).getByRole("button", { name: "Zoom in" }).isVisible()).toBe(false);
  });

  test("the time axis has a label every six hours of a day", async () => {
    await using page = await console.visit("/usage", { phone: true });
    await waitForBars(page);
    const labels = await chartOf(page).locator(".x-tick").allTextContents();
    expect(labels.length).toBeWithin(4, 6);
    // Each midnight shows its date: one, or two in the first minutes of a day, when the range begins with the one before.
    const hours = labels.map((label) => (/^\d+ \w{3}$/.test(label) ? 0 : Number(/^(\d\d):00$/.exec(label)?.[1])));
    expect(hours).toEqual(hours.map((_, index) => ((hours[0] ?? NaN) + 6 * index) % 24));
    expect(labels.filter((label) => label.includes(":"))).not.toContain("00:00");
    expect(hours.filter((hour) => hour === 0).length).toBeGreaterThan(0);
  });
});
