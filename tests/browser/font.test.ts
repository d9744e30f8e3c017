import { describe, expect, test } from "bun:test";
import { hasBrowser } from "./support/console-under-test.ts";
import { startSeededConsole, waitUntilLoaded } from "./support/seeded-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("font", () => {
  const console = shared(() => startSeededConsole());

  test("every page uses the font that the console ships, in one file", async () => {
    await using page = await console.visit("/", { fresh: true });
    // From the cache of the first visit, the font is there at the first paint.
    await page.reload();
    await waitUntilLoaded(page);
    const loaded = await page.evaluate(async () => {
      await document.fonts.ready;
      return [...document.fonts].filter(({ status }) => status === "loaded").map(({ family }) => family);
    });
    expect(loaded).toContain("Figtree");
    const session = await page.context().newCDPSession(page);
    await session.send("DOM.enable");
    await session.send("CSS.enable");
    const { root } = await session.send("DOM.getDocument");
    const { nodeId } = await session.send("DOM.querySelector", { nodeId: root.nodeId, selector: "h1" });
    const { fonts } = await session.send("CSS.getPlatformFontsForNode", { nodeId });
    expect(fonts.map(({ familyName, isCustomFont }) => [familyName.split(" ")[0], isCustomFont])).toEqual([
      ["Figtree", true],
    ]);
  });

  test("digits are equally wide, and the font does not replace a text that is painted", async () => {
    await using page = await console.visit("/", { fresh: true });
    await page.reload();
    await waitUntilLoaded(page);
    const widths = await page.evaluate(() => {
      const line = document.createElement("span");
      document.querySelector("main")?.append(line);
      return Array.from("0123456789", (digit) => {
        line.textContent = digit.repeat(20);
        return line.getBoundingClientRect().width;
      });
    });
    expect(new Set(widths).size).toBe(1);
    const display = await page.evaluate(() => [...document.fonts].find(({ family }) => family === "Figtree")?.display);
    expect(display).toBe("optional");
  });

  test("ships its licence", async () => {
    const response = await fetch(`${console.program.adminUrl}/figtree-license.txt`);
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(await response.text()).toContain("SIL OPEN FONT LICENSE");
  });

  test("scripts, styles and font together are at most 100 kB compressed", async () => {
    const page = await (await fetch(console.program.adminUrl)).text();
    const paths = [...page.matchAll(/(?:src|href)="(\/[^"]+\.(?:js|css|woff2))"/g)].map(([, path]) => path);
    expect(new Set(paths.map((path) => path?.split(".").at(-1)))).toEqual(new Set(["js", "css", "woff2"]));
    let bytes = 0;
    for (const path of paths) {
      const headers = { "accept-encoding": "br" };
      bytes += (await (await fetch(console.program.adminUrl + path, { headers, decompress: false })).bytes()).length;
    }
    expect(bytes).toBeLessThanOrEqual(100_000);
  });
});
