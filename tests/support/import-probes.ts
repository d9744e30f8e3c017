import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { findRow, type ImportRow, impureGlobals, isFile, repositoryRoot, toSpecifier } from "./import-table.ts";
import { createTempFolder, type TempFolder } from "./temp-folder.ts";

/** One line of a probe file: an import or a global that the table allows or forbids. */
export interface Probe {
  row: string;
  line: string;
  isAllowed: boolean;
}

export const folderWithoutRow = "src/folder-without-a-row";

/** Every cell of the table: for each row each other row, package and global; imports as a value and as a type. */
export function listProbes(rows: readonly ImportRow[]): Probe[] {
  const packages = [...new Set(rows.flatMap((row) => row.packages))];
  const names = new Set(rows.flatMap((row) => [row.name, ...row.imports, ...row.typesOf]));
  const inCells = rows.flatMap((row) => [
    ...[...names]
      .filter((name) => name !== row.name || !isFile(name))
      .flatMap((name) => probeTarget(row, name, findRow(rows, name)?.name ?? name)),
    ...packages.flatMap((name) => probePackage(row, name, row.packages.includes(name))),
    ...probePackage(row, "a-package-without-a-cell", false),
    ...impureGlobals.map((name) => ({ row: row.name, line: `void ${name};`, isAllowed: !row.pure })),
  ]);
  return [...inCells, { row: folderWithoutRow, line: 'import "elysia";', isAllowed: false }];
}

/** @param inRow the row that the name belongs to */
function probeTarget(row: ImportRow, name: string, inRow: string): Probe[] {
  const isAllowed = inRow === row.name || row.imports.includes(inRow) || row.imports.includes(name);
  const asType = isAllowed || row.typesOf.includes(name);
  if (isFile(name)) return probeSpecifier(row, toSpecifier(row, name), isAllowed, asType);
  return [
    ...probeSpecifier(row, toSpecifier(row, `${name}/probe.ts`), isAllowed, asType),
    ...probeSpecifier(row, toSpecifier(row, `${name}/folder-without-a-row/probe.ts`), false, false),
  ];
}

function probePackage(row: ImportRow, name: string, isAllowed: boolean): Probe[] {
  const specifiers = [name, `${name}/part`, `${name}/part/of-it`];
  return specifiers.flatMap((specifier) => probeSpecifier(row, specifier, isAllowed, isAllowed));
}

function probeSpecifier(row: ImportRow, specifier: string, asValue: boolean, asType: boolean): Probe[] {
  return [
    { row: row.name, line: `export * from "${specifier}";`, isAllowed: asValue },
    { row: row.name, line: `void import("${specifier}");`, isAllowed: asValue },
    { row: row.name, line: `export type * from "${specifier}";`, isAllowed: asType },
  ];
}

/**
 * Runs the linter once on all probes, in a folder with this repository's configuration.
 * @returns the probes that it reports
 */
export async function findReported(probes: readonly Probe[]): Promise<Set<Probe>> {
  using folder = createTempFolder();
  const byFile = Map.groupBy(probes, ({ row }) => (isFile(row) ? row : `${row}/probe.ts`));
  await copyConfiguration(folder);
  for (const [file, inFile] of byFile)
    await Bun.write(folder.file(file), inFile.map(({ line }) => `${line}\n`).join(""));
  const { diagnostics } = await runLinter(folder);
  return new Set(
    diagnostics
      .filter(({ code }) => /no-restricted-(imports|globals)/.test(code))
      .map(({ filename, labels }) => probeAt(byFile, filename, labels[0]?.span.line)),
  );
}

async function runLinter(folder: TempFolder): Promise<LinterReport> {
  const oxlint = folder.file("node_modules/.bin/oxlint");
  // Into a file: the linter ends before it has written megabytes into a pipe.
  const stdout = Bun.file(folder.file("report.json"));
  const command = [process.execPath, "--bun", oxlint, "--format", "json", "src", "console"];
  await Bun.spawn(command, { cwd: folder.path, stdout }).exited;
  return (await stdout.json()) as LinterReport;
}

async function copyConfiguration(folder: TempFolder): Promise<void> {
  const config = await Bun.file(join(repositoryRoot, ".oxlintrc.json")).text();
  // The restrictions do not need types, and collecting them takes seconds.
  await Bun.write(folder.file(".oxlintrc.json"), config.replace('"typeAware": true', '"typeAware": false'));
  for (const name of [".oxlintrc.imports.json", "node_modules"])
    symlinkSync(join(repositoryRoot, name), folder.file(name));
}

interface LinterReport {
  diagnostics: readonly { code: string; filename: string; labels: readonly { span: { line: number } }[] }[];
}

function probeAt(byFile: ReadonlyMap<string, readonly Probe[]>, file: string, line = 0): Probe {
  const probe = byFile.get(file)?.[line - 1];
  if (probe === undefined) throw new Error(`The linter reports ${file}:${line}, which is not a probe`);
  return probe;
}
