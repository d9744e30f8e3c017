import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasBrowser } from "./support/console-under-test.ts";
import { startTrafficConsole, type TrafficConsole, waitForLog } from "./support/traffic-console.ts";

describe.skipIf(!hasBrowser)("a dialog", () => {
  let traffic: TrafficConsole;
  let requestId = "";
  beforeAll(async () => {
    traffic = await startTrafficConsole();
    requestId = (await traffic.chat()).headers.get("x-request-id") ?? "";
    await waitForLog(traffic, 1);
  });
  afterAll(() => traffic.console[Symbol.asyncDispose]());

  test("closes on a press beside it, not on its own blank part or scrollbar", async () => {
    await using visit = await traffic.console.visit(`/requests?open=${requestId}`);
    const { page } = visit;
    await page.setViewportSize({ width: 1280, height: 2000 });
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Timeline").waitFor();
    const { x = 0, y = 0, width = 0, height = 0 } = (await dialog.boundingBox()) ?? {};
    const blank = [x + width / 2, y + height - 20] as const;
    expect(await page.evaluate(([left, top]) => document.elementFromPoint(left, top)?.tagName, blank)).toBe("DIALOG");
    await page.mouse.click(...blank);
    expect(await dialog.isVisible()).toBe(true);
    await page.mouse.click(x - 20, y + height / 2);
    await dialog.waitFor({ state: "detached" });
  });
});
