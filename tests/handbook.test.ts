import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { chapterFile, readHandbook, toChapter } from "../console/handbook.ts";
import { searchHandbook } from "../console/src/handbook/search.ts";
import { repositoryRoot } from "./support/import-table.ts";
import { partNamesOf, parts, withParts } from "./support/handbook-parts.ts";
import { pages, textOfPage } from "./support/manual.ts";

const chapters = readHandbook();
/** `settings#all-settings` of each heading, and `settings` of each chapter. */
const addresses = new Set(
  chapters.flatMap(({ name, sections }) => sections.map(({ id }) => (id === "" ? name : `${name}#${id}`))),
);

/** `bun run bench` writes it. */
const generated = ".github/BENCHMARKS.md";

/** As git hosts do. */
const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");

const textOf = (page: string): string => readFileSync(join(repositoryRoot, page), "utf8");

const slugsOf = (page: string): string[] =>
  [...textOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => slugOf(heading));

test("the contents list every chapter once", () => {
  const names = chapters.map(({ name }) => chapterFile(name).slice(repositoryRoot.length + 1));
  expect([...names, "console/src/handbook/README.md", "README.md"].toSorted()).toEqual(pages.toSorted());
});

const others = ["CHANGELOG", "CONTRIBUTING", "IMPORTS", "SECURITY", "WORKAROUNDS"].map((name) => `.github/${name}.md`);

test.each([...pages, ...others])("%s links only to files and headings that exist", (page) => {
  const links = [...textOf(page).matchAll(/\]\(([^):]+)\)/g)].map(([, target = ""]) => target);
  const broken = links.filter((link) => {
    const [path = "", heading] = link.split("#");
    const target = path === "" ? page : normalize(join(page, "..", path));
    if (!existsSync(join(repositoryRoot, target))) return target !== generated;
    return heading !== undefined && !slugsOf(target).includes(heading);
  });
  expect(broken).toEqual([]);
});

describe.each(pages)("%s", (page) => {
  test("has lines of at most 120 characters, except in tables", () => {
    const long = (line: string): boolean => line.length > 120 && !line.startsWith("|");
    expect(textOfPage(page).split("\n").filter(long)).toEqual([]);
  });
});

/** The formatter aligns the columns of tables. */
const squeezed = (text: string): string => text.replaceAll(/ +/g, " ").replaceAll(/-{3,}/g, "---");

describe("the parts of the handbook that come from the code", () => {
  test("are each in one page", () => {
    const names = pages.flatMap((page) => partNamesOf(textOfPage(page)));
    expect(names.toSorted()).toEqual(Object.keys(parts).toSorted());
  });

  test.each(pages.filter((page) => partNamesOf(textOfPage(page)).length > 0))(
    "are in %s as `bun run handbook` writes them, and no name lacks its words",
    async (page) => {
      expect(squeezed(textOfPage(page))).toBe(squeezed(await withParts(textOfPage(page))));
      const rows = [...textOfPage(page).matchAll(/^<!-- generated.*?^<!-- end/gms)].join("\n").match(/^\|.*$/gm);
      expect(rows?.filter((row) => /\| +\|$/.test(row)) ?? []).toEqual([]);
    },
  );
});

test("a heading has the same address in the console and on a git host", () => {
  for (const { name, sections } of chapters) {
    const slugs = slugsOf(`console/src/handbook/${name}.md`).slice(1);
    expect(sections.map(({ id }) => id).filter((id) => id !== "")).toEqual(slugs);
  }
});

const sourcesIn = (folder: string): string[] =>
  [...new Bun.Glob("**/*.{ts,tsx}").scanSync(join(repositoryRoot, folder))].map((name) => textOf(`${folder}/${name}`));

test("what the console opens in the handbook exists", () => {
  const links = sourcesIn("console/src").flatMap((source) =>
    [...source.matchAll(/(?:\bhelp=|<HandbookLink to=|^  \w+: )"([a-z-]+(?:#[a-z-]+)?)"/gm)]
      // A member of a table needs a heading to count as a link.
      .filter(([whole]) => !whole.startsWith("  ") || whole.includes("#"))
      .map(([, to = ""]) => to),
  );
  expect(links.length).toBeGreaterThan(20);
  expect(links.filter((to) => !addresses.has(to))).toEqual([]);
});

test("every page of the console is in the handbook's list of them", () => {
  const titles = sourcesIn("console/src").flatMap((source) =>
    [...source.matchAll(/<Page\s+title="([^"]+)"/g)].map(([, title = ""]) => title),
  );
  expect(titles.length).toBeGreaterThan(10);
  const listed = new Set(
    textOfPage("console/src/handbook/watching.md")
      .matchAll(/^\| ([A-Z][\w ]+?) +\|/gm)
      .map(([, page = ""]) => page),
  );
  expect(titles.filter((title) => title !== "Not found" && !listed.has(title))).toEqual([]);
});

test("every metric in the code is in the handbook's table", () => {
  const names = sourcesIn("src/telemetry").flatMap((source) => source.match(/(?<=")tollgate_\w+(?=")/g) ?? []);
  expect(names.length).toBeGreaterThan(30);
  const table = textOfPage("console/src/handbook/watching.md");
  expect(names.filter((name) => !table.includes(`\`${name}\``))).toEqual([]);
});

test("every metric that the handbook names is in its table", () => {
  const known = new Set(textOfPage("console/src/handbook/watching.md").match(/(?<=^\| `)tollgate_\w+(?=` )/gm));
  expect(known.size).toBeGreaterThan(40);
  // `tollgate_counted_…` stands for several.
  const named = pages.flatMap((page) => textOfPage(page).match(/(?<=`)tollgate_\w+(?=`)/g) ?? []);
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});

test("what commands and their errors name in the handbook exists", () => {
  const titles = new Set(
    chapters.flatMap(({ title, sections }) => [title, ...sections.map((section) => section.title)]),
  );
  const named = sourcesIn("src").flatMap((source) =>
    [...source.matchAll(/\(handbook: ([^)]+)\)|^export const chapter = "(.+)";$/gm)].map(
      ([, heading, chapter]) => heading ?? chapter ?? "",
    ),
  );
  expect(named.length).toBeGreaterThan(12);
  expect(named.filter((name) => !titles.has(name))).toEqual([]);
});

describe("a chapter", () => {
  const render = (text: string) => toChapter("name", "", `# Title\n\n${text}\n`);
  const html = (text: string) =>
    render(text)
      .blocks.map((block) => ("html" in block ? block.html : ""))
      .join("")
      .trim();

  test("links to other chapters at the console's addresses, and to nothing that the console has not", () => {
    expect(html("[a](keys.md) [b](keys.md#c) [d](#e) [f](../../../.github/SECURITY.md)")).toBe(
      '<p><a href="/help/handbook/keys">a</a> <a href="/help/handbook/keys#c">b</a> <a href="#e">d</a> f</p>',
    );
  });

  test("shows HTML as text", () => {
    expect(html("<script>a</script>")).toBe("<p>&lt;script&gt;a&lt;/script&gt;</p>");
  });

  test("has its code apart, as it is", () => {
    expect(render("Before\n\n```ini\nA=<b>\n```\n\nAfter").blocks).toEqual([
      { html: "<p>Before</p>\n" },
      { code: "A=<b>\n", language: "ini" },
      { html: "<p>After</p>\n" },
    ]);
  });

  test("has an address for each heading, and the text below it", () => {
    const { title, sections } = render("Zero\n\n## A `b`\n\nOne\n\n| c |\n| - |\n| d |\n\n### E\n\n```sh\ntwo\n```");
    expect(title).toBe("Title");
    expect(sections).toEqual([
      { id: "", title: "", text: "Zero" },
      { id: "a-b", title: "A b", text: "One c d" },
      { id: "e", title: "E", text: "two" },
    ]);
    expect(html("## A `b`")).toContain('<h2 id="a-b">A <code>b</code><a class="anchor" href="#a-b"');
  });

  test.each([
    ["without a heading in its first line", "text"],
    ["with two headings of the same address", "# Title\n\n## A\n\n## A\n"],
  ])("%s does not build", (_, file) => {
    expect(() => toChapter("name", "", file)).toThrow("name.md");
  });
});

describe("the search", () => {
  test.each([
    ["private certificate", "settings#a-backend-with-a-private-certificate"],
    ["How do I limit a key to 100,000 tokens a day?", "keys-and-limits#limit-a-key"],
    ["limit tokens per day", "keys-and-limits#limit-a-key"],
    ["What happens when the disk is full?", "watching#when-the-disk-is-full"],
    ["disk full", "watching#when-the-disk-is-full"],
    ["How to put a second GPU box behind it", "models-and-backends#a-second-gpu-machine"],
    ["several backends", "models-and-backends#several-models-and-backends"],
    ["How is Claude Code set up?", "agents#claude-code"],
    ["claude code", "agents#claude-code"],
    ["Open WebUI task model", "agents#connect-open-webui"],
    ["How to go back after a bad upgrade", "upgrade#go-back-after-a-bad-upgrade"],
    ["downgrade", "upgrade#go-back-after-a-bad-upgrade"],
    ["forgot password", "upgrade#a-lost-password"],
    ["PROXY_HAN_GUARD", "settings#all-settings"],
  ])("%s: %s", (query, address) => {
    const hits = searchHandbook(chapters, query).map(({ chapter, section }) => `${chapter.name}#${section.id}`);
    expect(hits.slice(0, 3)).toContain(address);
    expect(addresses).toContain(address);
  });

  test("finds nothing for what no chapter has", () => {
    expect(searchHandbook(chapters, "xyzzy")).toEqual([]);
    expect(searchHandbook(chapters, "")).toEqual([]);
  });
});
