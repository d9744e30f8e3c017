import type { AxeResults } from "axe-core";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { waitUntilLoaded } from "./seeded-console.ts";

const axe = readFileSync(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir), "utf8");

/** What axe finds on the page, with the element. @param within a CSS selector */
export async function violations(page: Page, within = "html", rules?: readonly string[]): Promise<string[]> {
  if (!(await page.evaluate(() => Reflect.has(globalThis, "axe")))) await page.evaluate(axe);
  const results = await page.evaluate(
    ([selector, only]): Promise<AxeResults> =>
      Reflect.get(globalThis, "axe").run({ include: [selector] }, only === undefined ? {} : { runOnly: only }),
    [within, rules] as const,
  );
  return results.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`));
}

/** As `violations`, in light and in dark mode, of which the second is looked at with the rules that colours matter for alone. */
export async function violationsInBothSchemes(page: Page): Promise<string[]> {
  await waitUntilLoaded(page);
  await page.emulateMedia({ colorScheme: "light" });
  const inLight = await violations(page);
  await page.emulateMedia({ colorScheme: "dark" });
  return [...inLight, ...(await violations(page, "html", ["color-contrast", "link-in-text-block"]))];
}
