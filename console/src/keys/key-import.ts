import { csvOf } from "../lib/csv.ts";
import type { Key } from "../queries.ts";

const maxNameCharacters = 120;
/** More would make a page that operators do not read before they click. */
export const maxImportedKeys = 1000;

interface ImportedNames {
  /** In the order of the file, each once. */
  names: string[];
  /** Those of them that the file has more than once. */
  repeated: string[];
  /** Why these cannot be created. */
  problem: string | undefined;
}

/** The names of a CSV's first column, or of one name a line. A first line `name` is a heading. */
export function parseNames(text: string): ImportedNames {
  const cells = firstCells(text.replace(/^\uFEFF/, "")).map((cell) => cell.trim());
  const filled = cells.filter((cell) => cell !== "");
  const listed = filled[0]?.toLowerCase() === "name" ? filled.slice(1) : filled;
  const names = [...new Set(listed)];
  const repeated = new Set(listed.filter((name, index) => listed.indexOf(name) !== index));
  return { names, repeated: [...repeated], problem: problemOf(names) };
}

function problemOf(names: readonly string[]): string | undefined {
  const long = names.find((name) => Array.from(name).length > maxNameCharacters);
  if (long !== undefined) return `A name has more than ${maxNameCharacters} characters: ${long.slice(0, 40)}…`;
  return names.length > maxImportedKeys ? `At most ${maxImportedKeys} keys can be created at once` : undefined;
}

/** RFC 4180, with `,`, `;` or a tab between cells. */
function firstCells(text: string): string[] {
  const line = /(?:"((?:[^"]|"")*)"|([^,;\t\r\n]*))[^\r\n]*(?:\r?\n|\r|$)/gy;
  const cells: string[] = [];
  while (line.lastIndex < text.length) {
    const found = line.exec(text);
    if (found === null) break;
    cells.push(found[1]?.replaceAll('""', '"') ?? found[2] ?? "");
  }
  return cells;
}

/** With the secrets in full. */
export const secretCsv = (keys: readonly Pick<Key, "id" | "name" | "key">[]): string =>
  csvOf(["id", "name", "key"], keys);
