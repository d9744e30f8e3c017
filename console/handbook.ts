import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Plugin } from "vite";
import type { Block, Chapter, Section } from "./src/handbook/chapter.ts";

/** The folder's first page, which lists the chapters in their order. */
export const contents = join(import.meta.dirname, "src/handbook/README.md");

/** Renders the handbook when the console is built: its first page becomes a module with all chapters. */
export function renderHandbook(): Plugin {
  return {
    name: "render-handbook",
    enforce: "pre",
    load(id): string | undefined {
      if (id !== contents) return undefined;
      const chapters = readHandbook();
      for (const { name } of chapters) this.addWatchFile(chapterFile(name));
      return `export default ${JSON.stringify(chapters)};`;
    },
  };
}

export const chapterFile = (name: string): string => join(dirname(contents), `${name}.md`);

/** @throws Error if a chapter has a form that the console cannot show */
export const readHandbook = (): Chapter[] =>
  [...readFileSync(contents, "utf8").matchAll(/^- \[.+\]\(([a-z-]+)\.md\): (.+)$/gm)].map(
    ([, name = "", summary = ""]) => toChapter(name, summary, readFileSync(chapterFile(name), "utf8")),
  );

export function toChapter(name: string, summary: string, file: string): Chapter {
  const [, title = "", text = ""] = /^# ([^\n]+)\n(.*)$/s.exec(file) ?? [];
  if (title === "") throw new Error(`${name}.md has no heading in its first line`);
  // For the test that compares tables with the code.
  const source = text.replaceAll(/^<!-- .* -->\n/gm, "");
  const sections = source.split(/^(?=#{2,3} )/m).map(toSection);
  const ids = sections.map(({ id }) => id);
  if (new Set(ids).size < ids.length) throw new Error(`${name}.md has two headings with the same address`);
  return { name, title: plain(title), summary, blocks: toBlocks(source), sections };
}

/** The text before the first heading is a section without an id. */
function toSection(source: string): Section {
  const [, heading, text = source] = /^#{2,3} ([^\n]+)\n(.*)$/s.exec(source) ?? [];
  return heading === undefined
    ? { id: "", title: "", text: plain(text) }
    : { id: idOf(heading), title: plain(heading), text: plain(text) };
}

const idOf = (heading: string): string =>
  / id="([^"]+)"/.exec(Bun.markdown.html(`## ${heading}`, { headings: { ids: true } }))?.[1] ?? "";

/** Without callbacks the renderer keeps the text alone. */
const plain = (source: string): string =>
  Bun.markdown
    .render(source, { paragraph: spaced, listItem: spaced, code: spaced, td: spaced, th: spaced, heading: spaced })
    .replaceAll(/\s+/g, " ")
    .trim();

const spaced = (children: string): string => `${children} `;

/** Blocks of code are apart: the console adds a button that copies one. */
const toBlocks = (source: string): Block[] =>
  source.split(/^(```\w*\n.*?^```\n)/ms).flatMap((part): Block[] => {
    const [, language = "", code] = /^```(\w*)\n(.*)```\n$/s.exec(part) ?? [];
    if (code !== undefined) return [{ code, language }];
    return part.trim() === "" ? [] : [{ html: toHtml(part) }];
  });

/** HTML in a chapter is shown as text. */
function toHtml(source: string): string {
  const html = Bun.markdown.html(source, { headings: { ids: true }, noHtmlBlocks: true, noHtmlSpans: true });
  return new HTMLRewriter()
    .on("h2, h3", {
      element(heading) {
        const link = `<a class="anchor" href="#${heading.getAttribute("id")}" aria-label="Link to this section">#</a>`;
        heading.append(link, { html: true });
      },
    })
    .on("table", {
      element(table) {
        table.before('<div class="table-scroll" tabindex="0" role="region" aria-label="Table">', { html: true });
        table.after("</div>", { html: true });
      },
    })
    .on("a[href]", {
      element(link) {
        const href = toHref(link.getAttribute("href") ?? "");
        if (href === undefined) link.removeAndKeepContent();
        else link.setAttribute("href", href);
      },
    })
    .transform(html);
}

/** The console's address of what a chapter links to. It has no other files of the repository: such a link stays text. */
function toHref(target: string): string | undefined {
  if (/^(https:|#)/.test(target)) return target;
  const [, name, hash = ""] = /^([a-z-]+)\.md(#.+)?$/.exec(target) ?? [];
  return name === undefined ? undefined : `/help/handbook/${name}${hash}`;
}
