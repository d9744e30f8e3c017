import { csvOf } from "../lib/csv.ts";
import type { Key } from "../queries.ts";
import { type LimitName, perLimit, priorities, type Priority } from "../../../src/domain/limits.ts";
import { limitOf, listOf } from "./key-limits.ts";

const maxNameCharacters = 120;
/** More would make a page that operators do not read before they click. */
export const maxImportedKeys = 1000;

/** What a cell sets; a team by its name. */
type ImportedFields = Partial<Record<LimitName, number>> & {
  priority?: Priority;
  name?: string;
  team?: string;
  team_id?: number;
  owner?: string;
  note?: string;
  tags?: string[];
};

export interface ImportedRow {
  /** A key's name, or a user's id at its front end. */
  id: string;
  fields: ImportedFields;
}

/** What a filled cell means, by the heading of its column; undefined: it cannot be read. */
type Readers = Readonly<Record<string, (cell: string) => ImportedFields | undefined>>;

const readers: Readers = {
  ...perLimit((name) => (cell: string) => {
    const limit = limitOf(cell);
    return limit === undefined || limit === null ? undefined : { [name]: limit };
  }),
  team: (team) => ({ team }),
  team_id: (cell) => (/^[1-9]\d{0,14}$/.test(cell) ? { team_id: Number(cell) } : undefined),
  priority: (cell) => {
    const priority = priorities.find((one) => one === cell);
    return priority && { priority };
  },
  note: (note) => ({ note }),
  tags: (cell) => ({ tags: listOf(cell) ?? [] }),
};

/** By the heading of the column that says who it is, the first if there are no headings. */
const readersOf: Readonly<Record<"name" | "external", Readers>> = {
  name: { ...readers, owner: (owner) => ({ owner }) },
  external: { ...readers, name: (name) => ({ name }) },
};

/** Keys or users from a CSV, or from one name a line. An empty cell sets nothing. @param idColumn says who it is */
export function parseImport(text: string, idColumn: "name" | "external") {
  const lines = cellsOf(text.replace(/^\uFEFF/, "")).filter((cells) => cells.some((cell) => cell !== ""));
  const heads = lines[0]?.map((cell) => cell.toLowerCase()) ?? [];
  const idAt = Math.max(0, heads.indexOf(idColumn));
  const columns = heads[idAt] === idColumn ? heads : [];
  const known = readersOf[idColumn];
  const problems: string[] = [];
  const fieldsOf = (cells: readonly string[]): ImportedFields =>
    columns.reduce<ImportedFields>((fields, column, index) => {
      const cell = cells[index] ?? "";
      const read = index !== idAt && Object.hasOwn(known, column) ? known[column] : undefined;
      const more = cell === "" || read === undefined ? {} : read(cell);
      if (more === undefined) problems.push(`${cells[idAt]}: ${column} cannot be ${cell}`);
      return Object.assign(fields, more);
    }, {});
  const rows = new Map<string, ImportedFields>();
  const repeated = new Set<string>();
  for (const cells of columns.length === 0 ? lines : lines.slice(1)) {
    const id = cells[idAt] ?? "";
    if (rows.has(id)) repeated.add(id);
    else if (id !== "") rows.set(id, fieldsOf(cells));
  }
  return {
    /** In the order of the file, each once. */
    rows: Array.from(rows, ([id, fields]) => ({ id, fields })),
    /** The ids of those that the file has more than once, of which the first counts. */
    repeated: [...repeated],
    /** The headings of columns that mean nothing here. */
    unread: columns.filter((column, index) => index !== idAt && column !== "" && !Object.hasOwn(known, column)),
    /** Why these cannot be created. */
    problem: problemOf([...rows.keys()]) ?? problems[0],
  };
}

function problemOf(names: readonly string[]): string | undefined {
  const long = names.find((name) => Array.from(name).length > maxNameCharacters);
  if (long !== undefined) return `A name has more than ${maxNameCharacters} characters: ${long.slice(0, 40)}…`;
  return names.length > maxImportedKeys ? `At most ${maxImportedKeys} can be created at once` : undefined;
}

/** RFC 4180, with `,`, `;` or a tab between cells: what the first line has. */
function cellsOf(text: string): string[][] {
  const separator = /^(?:"(?:[^"]|"")*"|[^,;\t\r\n]*)([,;\t])/.exec(text)?.[1] ?? ",;\t";
  const cell = new RegExp(`(?:"((?:[^"]|"")*)"|([^${separator}\r\n]*))([${separator}]|\r?\n|\r|$)`, "gy");
  const lines: string[][] = [];
  let line: string[] = [];
  while (cell.lastIndex < text.length) {
    const found = cell.exec(text);
    if (found === null) break;
    const content = found[1]?.replaceAll('""', '"') ?? found[2] ?? "";
    // Our own CSV has such a quote before what a spreadsheet would take for a formula.
    line.push(content.trim().replace(/^'(?=[=+\-@＝＋－＠])/, ""));
    if (separator.includes(found[3] || "\n")) continue;
    lines.push(line);
    line = [];
  }
  return [...lines, line];
}

/** With the secrets in full. */
export const secretCsv = (keys: readonly Pick<Key, "id" | "name" | "key">[]): string =>
  csvOf(["id", "name", "key"], keys);
