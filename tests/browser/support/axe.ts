import type { AxeResults } from "axe-core";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";

const axe = readFileSync(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir), "utf8");

/** What axe finds on the page, with the element. @param within a CSS selector */
export async function violations(page: Page, within = "html"): Promise<string[]> {
  await page.evaluate(axe);
  const results = await page.evaluate(
    (selector): Promise<AxeResults> => Reflect.get(globalThis, "axe").run({ include: [selector] }),
    within,
  );
  return results.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`));
}
