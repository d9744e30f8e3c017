import { dirname, join, relative } from "node:path";

/** A row of the import table in CONTRIBUTING.md; names are paths from the repository's root. */
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

const contributing = join(repositoryRoot, ".github/CONTRIBUTING.md");

/** @throws Error if the section or a cell does not have the expected form */
export async function readImportTable(): Promise<ImportRow[]> {
  const section = /^## Import table$(.*?)(?=^## |(?![^]))/ms.exec(await Bun.file(contributing).text())?.[1];
  if (section === undefined) throw new Error('CONTRIBUTING.md: no section "## Import table"');
  return [...section.matchAll(/^\| (`.+) \|$/gm)].map(([, cells = ""]) =>
    toRow(cells.split("|").map((cell) => cell.trim())),
  );
}

function toRow([name = "", imports = "", packages = "", pure = "", reason = ""]: readonly string[]): ImportRow {
  if (pure !== "" && pure !== "pure") throw new Error(`CONTRIBUTING.md, import table: ${pure} is not "pure"`);
  const targets = listNames(imports);
  const typesOf = targets.filter((target) => target.endsWith(types));
  return {
    name: toPath(name),
    imports: targets.filter((target) => !typesOf.includes(target)).map(toPath),
    typesOf: typesOf.map((target) => toFile(target.slice(0, -types.length))),
    packages: listNames(packages).map(unquote),
    pure: pure === "pure",
    reason,
  };
}

const types = " (types)";

const listNames = (cell: string): string[] => cell.split(", ").filter((name) => name !== "");

/** The table leaves out `src/`. */
function toPath(cell: string): string {
  const name = unquote(cell);
  return name.startsWith("console/") || name === "package.json" ? name : `src/${name}`;
}

/** The linter has no pattern for the types of a folder. */
function toFile(cell: string): string {
  const path = toPath(cell);
  if (!isFile(path)) throw new Error(`CONTRIBUTING.md, import table: ${cell} (types) is not a file`);
  return path;
}

function unquote(cell: string): string {
  const name = /^`([^`]+)`$/.exec(cell)?.[1];
  if (name === undefined) throw new Error(`CONTRIBUTING.md, import table: ${cell} is not a name in backquotes`);
  return name;
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
