import { beforeAll, describe, expect, test } from "bun:test";
import { join, normalize } from "node:path";
import { findCircles } from "./support/circles.ts";
import { findReported, folderWithoutRow, listProbes, type Probe } from "./support/import-probes.ts";
import { rulesFile, writeImportRules } from "./support/import-rules.ts";
import { findRow, type ImportRow, isFile, readImportTable, repositoryRoot } from "./support/import-table.ts";
import { listImports } from "./support/module-imports.ts";

/** An import, with the rows of its two ends; a package, or a file without a row, stands for itself. */
interface TreeImport {
  file: string;
  path: string;
  from: string;
  to: string;
  isType: boolean;
}

const rows = await readImportTable();
const files = ["src", "console/src"]
  .flatMap((root) =>
    [...new Bun.Glob("**/*.{ts,tsx}").scanSync(join(repositoryRoot, root))].map((name) => `${root}/${name}`),
  )
  .filter((name) => !name.endsWith(".d.ts"))
  .toSorted();
const treeImports = (await Promise.all(files.map(importsOf))).flat();

async function importsOf(file: string): Promise<TreeImport[]> {
  const source = await Bun.file(join(repositoryRoot, file)).text();
  return listImports(file, source).map(({ specifier, isType }) => {
    const path = specifier.startsWith(".") ? normalize(join(file, "..", specifier)) : specifier;
    const row = findRow(rows, file);
    return { file, path, isType, from: row?.name ?? file, to: targetOf(row, path) };
  });
}

/** `drizzle-orm` for `drizzle-orm/pg-core`, if the row allows that package. */
function targetOf(row: ImportRow | undefined, path: string): string {
  const cell = row?.packages.find((name) => path === name || path.startsWith(`${name}/`));
  return cell ?? findRow(rows, path)?.name ?? path;
}

const rowsOf = (names: readonly string[]): Set<string> =>
  new Set(names.map((name) => findRow(rows, name)?.name ?? name));

function isAllowed({ from, to, path, isType }: TreeImport): boolean {
  const row = rows.find(({ name }) => name === from);
  if (row === undefined) return false;
  if (from === to && !isFile(from)) return true;
  const allowed = new Set([...row.imports, ...row.packages, ...(isType ? row.typesOf : [])]);
  return allowed.has(to) || allowed.has(path);
}

describe("the import table", () => {
  test("has a row for every file", () => {
    const names = rows.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
    expect(files.filter((file) => findRow(rows, file) === undefined)).toEqual([]);
    const used = new Set(files.map((file) => findRow(rows, file)?.name));
    expect(names.filter((name) => !used.has(name))).toEqual(["console/src/styles"]);
  });

  test("allows every import in the tree, imports of types included", () => {
    const forbidden = treeImports.filter((one) => !isAllowed(one));
    expect(forbidden.map(({ file, path, isType }) => `${file} -> ${isType ? "type " : ""}${path}`)).toEqual([]);
  });

  test("names only imports that some file has", () => {
    const used = new Set(treeImports.flatMap(({ from, to, path }) => [`${from} -> ${to}`, `${from} -> ${path}`]));
    const cells = rows.flatMap(({ name, imports, typesOf, packages }) =>
      [...imports, ...typesOf, ...packages].map((to) => `${name} -> ${to}`),
    );
    expect(cells.filter((cell) => !used.has(cell))).toEqual([]);
  });

  test("has no circle except between a folder and its sub-folders", () => {
    const graph = new Map(rows.map(({ name, imports, typesOf }) => [name, rowsOf([...imports, ...typesOf])]));
    const circles = findCircles(graph).filter(
      (circle) => !circle.some((name) => circle.every((other) => other === name || other.startsWith(`${name}/`))),
    );
    expect(circles).toEqual([]);
  });
});

test("imports form no circle, imports of types included", () => {
  const graph = new Map(files.map((file) => [file, new Set<string>()]));
  for (const { file, path } of treeImports) graph.get(file)?.add(path);
  expect(findCircles(graph)).toEqual([]);
});

describe("the linter", () => {
  let probes: Probe[];
  let reported: Set<Probe>;
  beforeAll(async () => {
    probes = listProbes(rows);
    reported = await findReported(probes);
  });

  test("has the overrides that `bun run lint:rules` writes from the table", async () => {
    expect(await Bun.file(rulesFile).text()).toBe(writeImportRules(rows));
  });

  test.each([...rows.map(({ name }) => name), folderWithoutRow])(
    "reports what %s may not use, and nothing else",
    (name) => {
      const inRow = probes.filter(({ row }) => row === name);
      const linesOf = (chosen: Probe[]): string[] => chosen.map(({ line }) => line);
      expect(linesOf(inRow.filter((probe) => reported.has(probe)))).toEqual(
        linesOf(inRow.filter((probe) => !probe.isAllowed)),
      );
    },
  );
});
