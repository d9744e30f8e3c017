import { dirname, join } from "node:path";
import { type ImportRow, impureGlobals, isFile, readImportTable, repositoryRoot, toSpecifier } from "./import-table.ts";

/** The options of `no-restricted-imports`. */
interface Restriction {
  paths?: readonly { name: string; allowTypeImports: true; message: string }[];
  patterns: readonly { group: readonly string[]; message: string }[];
}

interface Override {
  files: readonly string[];
  rules: Record<string, readonly unknown[]>;
}

/** `.oxlintrc.json` extends it. */
export const rulesFile = join(repositoryRoot, ".oxlintrc.imports.json");

/** The linter's overrides that the table stands for: one for each row, a line each. */
export function writeImportRules(rows: readonly ImportRow[]): string {
  // Later overrides win: a file's row counts more than that of its folder.
  const ordered = rows.toSorted((left, right) => Number(isFile(left.name)) - Number(isFile(right.name)));
  const overrides = [unknownFolders, ...ordered.map((row) => toOverride(row, rows))];
  return `{"overrides":[\n${overrides.map((override) => JSON.stringify(override)).join(",\n")}\n]}\n`;
}

/** Forbids all imports, so that a new folder needs its row. The rows come later in the list and override it. */
const unknownFolders: Override = {
  files: ["src/**", "console/src/**"],
  rules: restrictImports({
    patterns: [{ group: ["**"], message: "Add a row to .github/IMPORTS.md." }],
  }),
};

function toOverride(row: ImportRow, rows: readonly ImportRow[]): Override {
  const message = `${row.reason} See .github/IMPORTS.md.`;
  const paths = row.typesOf.map((name) => ({ name: toSpecifier(row, name), allowTypeImports: true, message }) as const);
  const patterns = [{ group: ["**", ...allowedSpecifiers(row, rows)], message }];
  return {
    files: [isFile(row.name) ? row.name : `${row.name}/*.{ts,tsx}`],
    rules: { ...restrictImports({ paths, patterns }), ...(row.pure ? restrictGlobals() : {}) },
  };
}

function restrictImports(restriction: Restriction): Override["rules"] {
  return { "eslint/no-restricted-imports": ["error", restriction] };
}

function restrictGlobals(): Override["rules"] {
  const globals = impureGlobals.map((name) => ({ name, message: "Pure: no I/O." }));
  return { "eslint/no-restricted-globals": ["error", ...globals] };
}

/** In the form of .gitignore: `!` allows, and the last pattern that fits decides. */
function allowedSpecifiers(row: ImportRow, rows: readonly ImportRow[]): string[] {
  const folders = row.imports.filter((name) => !isFile(name));
  const files = [...row.imports, ...row.typesOf].filter(isFile);
  if (!isFile(row.name)) folders.unshift(row.name);
  const forbiddenInside = rows
    .map(({ name }) => name)
    .filter((name) => isFile(name) && folders.includes(dirname(name)) && !files.includes(name));
  return [
    ...folders.map((name) => `!${toSpecifier(row, `${name}/*`)}`),
    ...forbiddenInside.map((name) => toSpecifier(row, name)),
    ...files.map((name) => `!${toSpecifier(row, name)}`),
    ...row.packages.map((name) => `!${name}{,/**/*}`),
  ];
}

if (import.meta.main) await Bun.write(rulesFile, writeImportRules(await readImportTable()));
