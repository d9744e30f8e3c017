import {
  braceClose,
  braceOpen,
  bracketClose,
  bracketOpen,
  comma,
  createSource,
  isDigit,
  notJson,
  quote,
  scalarEnd,
  skipSpace,
  type Source,
  stringEnd,
  valueEnd,
  valueStart,
} from "./scan.ts";

/**
 * A JSON reader that returns positions, so that a body can be edited without serializing it. It reads the text once,
 * keeps what a shape names and only validates the rest.
 */

/** Which members or elements to keep. Other containers are skipped without recursion, however deep they are. */
export interface Shape {
  readonly members?: ReadonlyMap<string, Shape>;
  readonly elements?: Shape;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

export interface JsonObjectNode extends Span {
  readonly kind: "object";
  /** Those kept, in order, with duplicates. A list, not a map, because a body has one for each of its messages. */
  readonly members: readonly JsonMember[];
  /** After the last member; after the brace if there is none. */
  readonly tail: number;
}

export interface JsonMember {
  /** Unescaped. */
  readonly name: string;
  readonly value: JsonNode;
}

export interface JsonArrayNode extends Span {
  readonly kind: "array";
  /** Empty unless the shape names elements. */
  readonly elements: readonly JsonNode[];
  /** After the last element; after the bracket if there is none. */
  readonly tail: number;
}

export interface JsonScalar extends Span {
  /** `literal`: true, false, null, NaN, Infinity. */
  readonly kind: "string" | "number" | "literal";
}

export type JsonNode = JsonObjectNode | JsonArrayNode | JsonScalar;

/** `{}` keeps a member's value, a fuller shape also what is inside it. */
export function objectShape(members: Readonly<Record<string, Shape>>): Shape {
  return { members: new Map(Object.entries(members)) };
}

/** Undefined if the text is not JSON. */
export function readJson(text: string, shape: Shape): JsonNode | undefined {
  const source = createSource(text);
  // llama.cpp and Python skip a byte order mark.
  const node = readNode(source, skipSpace(text, text.charCodeAt(0) === 0xfeff ? 1 : 0), shape);
  return node !== undefined && skipSpace(text, node.end) === text.length ? node : undefined;
}

/** The last value of the name, which is the one that backends use. */
export function findMember(object: JsonObjectNode, name: string): JsonNode | undefined {
  return object.members.findLast((member) => member.name === name)?.value;
}

/** All values of the name. */
export function listMembers(object: JsonObjectNode, name: string): JsonNode[] {
  return object.members.filter((member) => member.name === name).map((member) => member.value);
}

/** The string's content; undefined for a node that is not a string. */
export function findString(text: string, node: JsonNode | undefined): string | undefined {
  return node?.kind === "string" ? unquote(text, node.start, node.end) : undefined;
}

export function isLiteral(text: string, node: JsonNode | undefined, literal: string): boolean {
  return node?.kind === "literal" && text.slice(node.start, node.end) === literal;
}

const none: readonly JsonNode[] = [];
const noMembers: ReadonlyMap<string, Shape> = new Map();

function readNode(source: Source, at: number, shape: Shape): JsonNode | undefined {
  const first = source.text.charCodeAt(at);
  if (first === braceOpen) return readObject(source, at, shape.members ?? noMembers);
  if (first === bracketOpen) return readArray(source, at, shape.elements);
  const end = scalarEnd(source, at, first);
  if (end === notJson) return undefined;
  return { kind: scalarKind(first, source.text.charCodeAt(end - 1)), start: at, end };
}

function scalarKind(first: number, last: number): JsonScalar["kind"] {
  if (first === quote) return "string";
  return isDigit(last) ? "number" : "literal";
}

function readObject(source: Source, start: number, wanted: ReadonlyMap<string, Shape>): JsonObjectNode | undefined {
  const { text } = source;
  const members: JsonMember[] = [];
  let tail = start + 1;
  let at = skipSpace(text, tail);
  if (text.charCodeAt(at) === braceClose) return { kind: "object", start, end: at + 1, members, tail };
  for (;;) {
    const nameEnd = text.charCodeAt(at) === quote ? stringEnd(source, at) : notJson;
    if (nameEnd === notJson) return undefined;
    const name = wanted.size === 0 ? "" : unquote(text, at, nameEnd);
    at = valueStart(text, nameEnd);
    if (at === notJson) return undefined;
    const shape = wanted.get(name);
    if (shape === undefined) tail = valueEnd(source, at);
    else {
      const node = readNode(source, at, shape);
      tail = node?.end ?? notJson;
      if (node !== undefined) members.push({ name, value: node });
    }
    if (tail === notJson) return undefined;
    at = skipSpace(text, tail);
    const next = text.charCodeAt(at);
    if (next === braceClose) return { kind: "object", start, end: at + 1, members, tail };
    if (next !== comma) return undefined;
    at = skipSpace(text, at + 1);
  }
}

function readArray(source: Source, start: number, shape: Shape | undefined): JsonArrayNode | undefined {
  const { text } = source;
  const elements: JsonNode[] = [];
  let tail = start + 1;
  let at = skipSpace(text, tail);
  if (text.charCodeAt(at) === bracketClose) return { kind: "array", start, end: at + 1, elements: none, tail };
  for (;;) {
    if (shape === undefined) tail = valueEnd(source, at);
    else {
      const node = readNode(source, at, shape);
      tail = node?.end ?? notJson;
      if (node !== undefined) elements.push(node);
    }
    if (tail === notJson) return undefined;
    at = skipSpace(text, tail);
    const next = text.charCodeAt(at);
    if (next === bracketClose) return { kind: "array", start, end: at + 1, elements, tail };
    if (next !== comma) return undefined;
    at = skipSpace(text, at + 1);
  }
}

function unquote(text: string, start: number, end: number): string {
  const content = text.slice(start + 1, end - 1);
  return content.includes("\\") ? (JSON.parse(text.slice(start, end)) as string) : content;
}
