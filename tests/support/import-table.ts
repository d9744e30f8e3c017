import { dirname, join, relative } from "node:path";

/** A row of the import table; names are paths from the repository's root. */
export interface ImportRow {
  /** A file, or a folder without its sub-folders: those have rows of their own. */
  name: string;
  /** Other rows, or single files. */
  imports: readonly string[];
  /** Files that it imports with `import type` only. */
  typesOf: readonly string[];
  /** Packages with all that is below them: `elysia` allows `elysia/utils`. */
  packages: readonly string[];
  /** Uses none of `impureGlobals`. */
  pure: boolean;
  reason: string;
}

export const repositoryRoot = join(import.meta.dir, "../..");
export const impureGlobals = ["fetch", "process", "Bun"];

const importTable = join(repositoryRoot, ".github/IMPORTS.md");

/** @throws Error if a line does not have the expected form */
export async function readImportTable(): Promise<ImportRow[]> {
  const table = await Bun.file(importTable).text();
  return [...table.matchAll(/^- .*(?:\n  .*)*$/gm)].map(([item]) => toRow(item.split("\n")));
}

/** @param item a line for the room, then one for each room that it may import, then one for all packages */
function toRow([head = "", ...lines]: readonly string[]): ImportRow {
  const [, name, pure, reason] = /^- `([^`]+)`(, pure)?: (.+)$/.exec(head) ?? [];
  if (name === undefined || reason === undefined) throw new Error(`IMPORTS.md: ${head}`);
  const row = { imports: [] as string[], typesOf: [] as string[], packages: [] as string[] };
  for (const line of lines) {
    const [, kind = "", names] = /^ {2}- (types of |packages: )?(`[^`]+`(?:, `[^`]+`)*)$/.exec(line) ?? [];
    if (names === undefined) throw new Error(`IMPORTS.md, ${name}: ${line}`);
    const targets = names.split(", ").map((quoted) => quoted.slice(1, -1));
    if (kind === "packages: ") row.packages.push(...targets);
    else if (kind === "") row.imports.push(...targets.map(toPath));
    else row.typesOf.push(...targets.map(toFile));
  }
  return { name: toPath(name), ...row, pure: pure !== undefined, reason };
}

/** The table leaves out `src/`. */
function toPath(name: string): string {
  return name.startsWith("console/") || name === "package.json" ? name : `src/${name}`;
}

/** The linter has no pattern for the types of a folder. */
function toFile(name: string): string {
  const path = toPath(name);
  if (!isFile(path)) throw new Error(`IMPORTS.md: types of ${name}, which is not a file`);
  return path;
}

export const isFile = (name: string): boolean => /\.\w+$/.test(name);

/** The row that a file belongs to. */
export const findRow = (rows: readonly ImportRow[], file: string): ImportRow | undefined =>
  rows.find(({ name }) => name === file) ?? rows.find(({ name }) => name === dirname(file));

/** How a file of the row writes the import of another file. */
export function toSpecifier(row: ImportRow, path: string): string {
  const specifier = relative(isFile(row.name) ? dirname(row.name) : row.name, path);
  return specifier.startsWith(".") ? specifier : `./${specifier}`;
}
