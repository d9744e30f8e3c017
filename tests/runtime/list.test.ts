import { expect, test } from "bun:test";
import { join } from "node:path";

const root = join(import.meta.dir, "../..");

/** The paths in the list of workarounds. */
async function listedPaths(): Promise<string[]> {
  const text = await Bun.file(join(root, ".github/WORKAROUNDS.md")).text();
  const items = text.split("\n").filter((line) => line.startsWith("- "));
  return items.flatMap((item) => [...item.matchAll(/`((?:src|console|tests)\/[^`]+)`/g)].map(([, path]) => path ?? ""));
}

/** The files with a comment "Remove when …", or "Remove something when …". */
async function commentedPaths(): Promise<string[]> {
  const paths: string[] = [];
  for (const folder of ["src", "console/src", "tests"]) {
    for await (const name of new Bun.Glob("**/*.{ts,tsx}").scan(join(root, folder))) {
      const path = `${folder}/${name}`;
      const text = (await Bun.file(join(root, path)).text()).replaceAll(/\n\s*(?:\*|\/\/)/g, "");
      if (!path.startsWith("tests/runtime/") && /\bRemove\s(?:[^.]*?\s)?when\b/.test(text)) paths.push(path);
    }
  }
  return paths;
}

const contains = (path: string, file: string): boolean => file === path || file.startsWith(`${path}/`);

test("WORKAROUNDS.md lists the files that have a comment 'Remove when', and no others", async () => {
  const [listed, commented] = await Promise.all([listedPaths(), commentedPaths()]);
  expect(commented.filter((file) => !listed.some((path) => contains(path, file)))).toEqual([]);
  expect(listed.filter((path) => !commented.some((file) => contains(path, file)))).toEqual([]);
});
