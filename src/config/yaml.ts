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
  const deepAt = findDeep(text);
  if (deepAt !== undefined)
    return { faults: [{ line: text.slice(0, deepAt).split("\n").length, path: [], problem: tooDeep }] };
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
  const root: Place = { line: lineAt(document.contents?.range?.[0] ?? 0) };
  const value = reader.read(document.contents, [], root);
  if (reader.faults.length > 0) return { faults: reader.faults };
  const find = (path: YamlPath): Place | undefined =>
    path.reduce<Place | undefined>((place, part) => place?.within?.get(part), root);
  const lineOf = (path: YamlPath): number => find(path)?.line ?? lineOf(path.slice(0, -1));
  return { value, lineOf, namesIn: (path) => [...(find(path)?.within?.keys() ?? [])].map(String) };
}

/** No member of a file is so deep. */
const maxDepth = 16;
const tooDeep = "it is nested too deeply";

/** Where more is open than in any file, in brackets or in one line, quoted or not: the parser takes seconds for it. */
function findDeep(text: string): number | undefined {
  let open = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === "[" || char === "{") open += 1;
    else if (char === "]" || char === "}") open -= 1;
    if (open > 100) return at;
  }
  return /(?:[-?][ \t]+){100}/.exec(text)?.index;
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
  RESOURCE_EXHAUSTION: tooDeep,
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

/** Where something stands, and what stands in it, in its order. */
interface Place {
  line: number;
  within?: Map<string | number, Place>;
}

function createReader(lineAt: (offset: number) => number): {
  read(node: unknown, path: YamlPath, place: Place): unknown;
  faults: YamlFault[];
} {
  const faults: YamlFault[] = [];
  const placeOf = (node: unknown, around: Place): Place => ({
    line: isNode(node) && node.range ? lineAt(node.range[0]) : around.line,
  });
  function enter(around: Place, part: string | number, node: unknown): Place {
    const place = placeOf(node, around);
    around.within ??= new Map();
    around.within.set(part, place);
    return place;
  }
  function read(node: unknown, path: YamlPath, place: Place): unknown {
    const refuse = (problem: string): undefined => void faults.push({ line: place.line, path, problem });
    if (path.length > maxDepth) return refuse(tooDeep);
    if (isAlias(node)) return refuse("aliases (*) are not allowed; write the value again");
    if (node === null || node === undefined) return null;
    if (!isMap(node) && !isSeq(node) && !isScalar(node)) return refuse("this is not allowed");
    if (node.anchor !== undefined) return refuse("anchors (&) are not allowed");
    if (node.tag !== undefined) return refuse("tags (!) are not allowed; use quotes for text");
    if (isSeq(node)) return node.items.map((item, at) => read(item, [...path, at], enter(place, at, item)));
    return isMap(node) ? readMap(node.items, path, place) : node.value;
  }
  function readMap(items: readonly Pair[], path: YamlPath, place: Place): unknown {
    const value: Record<string, unknown> = Object.create(null);
    for (const item of items) {
      if (!isScalar(item.key)) {
        faults.push({ line: place.line, path, problem: "a name has to be text" });
        continue;
      }
      const name = textOf(item.key.value);
      const member = [...path, name];
      const first = place.within?.get(name);
      if (first !== undefined) {
        const { line } = placeOf(item.key, place);
        faults.push({ line, path: member, problem: `stands here twice, first on line ${first.line}` });
        continue;
      }
      const own = enter(place, name, item.key);
      const isPlain = item.key.anchor === undefined && item.key.tag === undefined;
      if (isPlain) value[name] = read(item.value, member, own);
      else faults.push({ line: own.line, path: member, problem: "anchors (&) and tags (!) are not allowed" });
    }
    return value;
  }
  return { read, faults };
}

/** A key is text; an empty one is null. */
const textOf = (key: unknown): string => (typeof key === "string" ? key : "");
