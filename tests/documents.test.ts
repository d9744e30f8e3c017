import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "..");
const textOf = (document: string): Promise<string> => Bun.file(join(root, document)).text();

/** What stands in backticks and looks like a path of this repository. */
const pathsIn = (text: string): string[] =>
  [...text.matchAll(/`((?:src|console|tests|drizzle|\.ci|\.github)(?:\/[\w./-]+)?)`/g)].map(([, path]) => path ?? "");

describe.each([".github/SECURITY.md"])("%s", (document) => {
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
