import { beforeAll, describe, expect, test } from "bun:test";
import { hasBrowser } from "./support/console-under-test.ts";
import { shared } from "../support/shared.ts";
import { startTrafficConsole, waitForLog } from "./support/traffic-console.ts";

describe.skipIf(!hasBrowser)("a dialog", () => {
  const traffic = shared(() => startTrafficConsole());
  let requestId = "";
  beforeAll(async () => {
    requestId = (await traffic.chat()).headers.get("x-request-id") ?? "";
    await waitForLog(traffic, 1);
  });

  test("closes on a press beside it, not on its own blank part or scrollbar", async () => {
    await using page = await traffic.console.visit(`/requests?open=${requestId}`);
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
