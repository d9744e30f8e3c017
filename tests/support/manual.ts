import { readdirSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "./import-table.ts";

/** The pages of the manual, as paths from the repository's root: the README and the chapters of the handbook. */
export const pages = [
  "README.md",
  ...readdirSync(join(repositoryRoot, "console/src/handbook"))
    .filter((name) => name.endsWith(".md"))
    .toSorted()
    .map((name) => `console/src/handbook/${name}`),
];

const texts = new Map(
  await Promise.all(pages.map(async (page) => [page, await Bun.file(join(repositoryRoot, page)).text()] as const)),
);

export const textOfPage = (page: string): string => texts.get(page) ?? "";

export const textOfChapter = (name: string): string => textOfPage(`console/src/handbook/${name}.md`);

/** All pages in one. */
export const manual = [...texts.values()].join("\n");

/** The manual's blocks of code in this language, page by page. */
export const manualBlocks = (language: string): string[] =>
  [...manual.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, of, text]) => (of === language ? [text ?? ""] : []));

/** The block of settings or of a unit that has this text. @throws Error if there is none, or several */
export function manualBlock(language: string, text: string): string {
  const [block, ...more] = manualBlocks(language).filter((one) => one.includes(text));
  if (block === undefined || more.length > 0) throw new Error(`The manual has not exactly one block with ${text}`);
  return block;
}

/**
 * The manual's configuration of a web server in front of two instances, `gate-1.internal` and `gate-2.internal`. For nginx
 * it is described as a change to the server for one instance.
 */
export function manualBalancer(language: "nginx" | "caddyfile"): string {
  const balancing = manualBlock(language, "gate-2.internal");
  if (language === "caddyfile") return balancing;
  const [, directives = ""] = /`(proxy_pass [^`]+)`/.exec(manual) ?? [];
  return balancing + manualBlock("nginx", "ssl_certificate").replace(/proxy_pass [^;]+;/, directives);
}
