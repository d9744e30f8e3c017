import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { cloneText } from "./support/handbook-parts.ts";
import packageJson from "../package.json" with { type: "json" };

const root = join(import.meta.dir, "..");
const textOf = (document: string): Promise<string> => Bun.file(join(root, document)).text();

/** What stands in backticks and looks like a path of this repository. */
const pathsIn = (text: string): string[] =>
  [...text.matchAll(/`((?:src|console|tests|drizzle|\.ci|\.github)(?:\/[\w./-]+)?)`/g)].map(([, path]) => path ?? "");

describe.each([".github/CONTRIBUTING.md", ".github/SECURITY.md", ".github/WORKAROUNDS.md"])("%s", (document) => {
  test("names only files and folders that exist", async () => {
    const paths = pathsIn(await textOf(document));
    expect(paths).not.toBeEmpty();
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});

test("every row of the threat model names a test", async () => {
  const rows = [...(await textOf(".github/SECURITY.md")).matchAll(/^\|.*\|$/gm)].map(([row]) => row).slice(2);
  expect(rows).not.toBeEmpty();
  expect(rows.filter((row) => !/`tests\/[\w./-]+\.test\.ts` *\|$/.test(row))).toEqual([]);
});

/** The text below a heading of the second level. */
const section = (text: string, heading: string): string =>
  text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";

const foldersIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));

test("the tree names every folder of the program", async () => {
  const named = new Set(pathsIn(section(await textOf(".github/CONTRIBUTING.md"), "The tree")));
  expect(foldersIn("src").filter((folder) => !named.has(folder))).toEqual([]);
});

test("README says where to get the program before anything else", async () => {
  const first = (await textOf("README.md")).split("\n").slice(0, 10).join("\n");
  expect(first).toMatch(/\bclone\b/i);
  expect(first).toContain("releases");
  expect(first).toContain(cloneText(packageJson));
  const repository = { url: "git+https://git.example/tollgate.git" };
  expect(cloneText({ ...packageJson, repository })).toStartWith("Run `git clone https://git.example/tollgate.git` and");
});

test("the changelog's latest version is the program's", async () => {
  const versions = [...(await textOf(".github/CHANGELOG.md")).matchAll(/^## \[(\d[^\]]*)\] - \d{4}-\d\d-\d\d$/gm)];
  expect(versions[0]?.[1]).toBe(packageJson.version);
  expect(versions.map(([, version = ""]) => version)).toEqual(
    versions.map(([, version = ""]) => version).toSorted((a, b) => Bun.semver.order(b, a)),
  );
});

test("CONTRIBUTING is read in one sitting, in one window", async () => {
  const lines = (await textOf(".github/CONTRIBUTING.md")).trimEnd().split("\n");
  expect(lines.length).toBeLessThanOrEqual(300);
  expect(lines.filter((line) => line.length > 160)).toEqual([]);
});

test("Packages names every dependency", async () => {
  const packages = section(await textOf(".github/CONTRIBUTING.md"), "Packages");
  const rows = [...packages.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, names = ""]) => names.match(/[^`, ]+/g) ?? []);
  const installed = [packageJson.dependencies, packageJson.devDependencies].flatMap((list) => Object.keys(list));
  expect(rows.toSorted()).toEqual(installed.toSorted());
});
