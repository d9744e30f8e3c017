import type { AxeResults } from "axe-core";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";

const axe = readFileSync(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir), "utf8");

/** The rules for which the colours of a page matter, which a second look at it in other colours needs alone. */
export const colourRules = ["color-contrast", "link-in-text-block"];

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
