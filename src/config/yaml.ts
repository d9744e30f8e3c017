import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, type Pair, parseDocument, type YAMLError } from "yaml";

/** Where something stands: names of members, and places in lists, from the top. */
export type YamlPath = readonly (string | number)[];

export interface YamlFault {
  line: number;
  path: YamlPath;
  problem: string;
}

export interface YamlText {
  /** Made of null-prototype objects, arrays, strings, numbers, booleans and null. */
  value: unknown;
  /** The line of a member, or of the nearest one around it. */
  lineOf(path: YamlPath): number;
  /** The names in a mapping, in their order: objects move names such as `7` to the front. */
  namesIn(path: YamlPath): readonly string[];
}

/** Aliases, tags and several documents are faults: what is read stands in the text, once. */
export function readYaml(text: string): YamlText | { faults: readonly YamlFault[] } {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    // They would show the text around the fault, which may hold a key.
    prettyErrors: false,
    stringKeys: true,
    // Compares each with each; the reader below has a look at both places too.
    uniqueKeys: false,
    version: "1.2",
  });
  const lineAt = (offset: number): number => Math.max(1, lines.linePos(offset).line);
  const errors = [...document.errors, ...document.warnings];
  if (errors.length > 0) return { faults: syntaxFaults(errors, lineAt) };
  const reader = createReader(lineAt);
  const value = reader.read(document.contents, []);
  if (reader.faults.length > 0) return { faults: reader.faults };
  return { value, lineOf: reader.lineOf, namesIn: reader.namesIn };
}

/** The parser's own words quote the text, which may hold a key. */
const syntaxProblems: Partial<Record<YAMLError["code"], string>> = {
  BAD_ALIAS: "aliases (*) are not allowed; write the value again, and put a name with * in quotes",
  BAD_DQ_ESCAPE: "this escape is not allowed in double quotes; use single quotes",
  BAD_INDENT: "the indentation is wrong, or a bracket is missing; indent the members of one mapping alike",
  BAD_SCALAR_START: "a value that begins with this character has to be in quotes",
  BLOCK_AS_IMPLICIT_KEY: "two mappings are in one line; begin a new line, or use quotes",
  MISSING_CHAR: "a quote, bracket, colon or comma is missing",
  MULTILINE_IMPLICIT_KEY: "a colon is missing after a name",
  MULTIPLE_DOCS: "a second document begins here; use one",
  NON_STRING_KEY: "a name has to be text",
  RESOURCE_EXHAUSTION: "it is nested too deeply",
  TAB_AS_INDENT: "a tab is not allowed here; indent with blanks",
  TAG_RESOLVE_FAILED: "tags (!) are not allowed; use quotes for text",
};

/** One for each line: the others on it follow from the first. */
function syntaxFaults(errors: readonly YAMLError[], lineAt: (offset: number) => number): YamlFault[] {
  const faults = new Map<number, YamlFault>();
  for (const { code, pos } of errors) {
    const line = lineAt(pos[0]);
    const problem = syntaxProblems[code] ?? "this is not YAML";
    if (!faults.has(line)) faults.set(line, { line, path: [], problem });
  }
  return [...faults.values()];
}

interface Reader extends Pick<YamlText, "lineOf" | "namesIn"> {
  read(node: unknown, path: YamlPath): unknown;
  faults: YamlFault[];
}

function createReader(lineAt: (offset: number) => number): Reader {
  const faults: YamlFault[] = [];
  const lines = new Map<string, number>();
  const names = new Map<string, string[]>();
  const lineOf = (path: YamlPath): number =>
    lines.get(JSON.stringify(path)) ?? (path.length === 0 ? 1 : lineOf(path.slice(0, -1)));
  /** @param node its line is that of the path, unless the path has one */
  function place(node: unknown, path: YamlPath): void {
    const name = JSON.stringify(path);
    if (!lines.has(name) && isNode(node) && node.range) lines.set(name, lineAt(node.range[0]));
  }
  function refuse(path: YamlPath, problem: string): undefined {
    faults.push({ line: lineOf(path), path, problem });
  }
  function read(node: unknown, path: YamlPath): unknown {
    place(node, path);
    if (isAlias(node)) return refuse(path, "aliases (*) are not allowed; write the value again");
    if (node === null || node === undefined) return null;
    if (!isMap(node) && !isSeq(node) && !isScalar(node)) return refuse(path, "this is not allowed");
    if (node.anchor !== undefined) return refuse(path, "anchors (&) are not allowed");
    if (node.tag !== undefined) return refuse(path, "tags (!) are not allowed; use quotes for text");
    if (isSeq(node)) return node.items.map((item, at) => read(item, [...path, at]));
    return isMap(node) ? readMap(node.items, path) : node.value;
  }
  function readMap(items: readonly Pair[], path: YamlPath): unknown {
    const value: Record<string, unknown> = Object.create(null);
    const inOrder: string[] = [];
    names.set(JSON.stringify(path), inOrder);
    for (const item of items) {
      if (!isScalar(item.key)) {
        refuse(path, "a name has to be text");
        continue;
      }
      const name = textOf(item.key.value);
      const member = [...path, name];
      if (Object.hasOwn(value, name)) {
        const line = item.key.range ? lineAt(item.key.range[0]) : lineOf(path);
        faults.push({ line, path: member, problem: `stands here twice, first on line ${lineOf(member)}` });
        continue;
      }
      inOrder.push(name);
      place(item.key, member);
      if (item.key.anchor === undefined && item.key.tag === undefined) value[name] = read(item.value, member);
      else refuse(member, "anchors (&) and tags (!) are not allowed");
    }
    return value;
  }
  return { read, faults, lineOf, namesIn: (path) => names.get(JSON.stringify(path)) ?? [] };
}

/** A key is text; an empty one is null. */
const textOf = (key: unknown): string => (typeof key === "string" ? key : "");
