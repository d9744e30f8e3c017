/**
 * Finds where JSON values end. Strict (RFC 8259), except for `NaN`, `Infinity` and `-Infinity`: Python's json module, and
 * so vLLM and SGLang, accepts them, and a body that has one must not escape its cap.
 */

/** Returned instead of a position: the text is not JSON. */
export const notJson = -1;

export interface Source {
  readonly text: string;
  /** The open brackets of the value that is skipped; a byte each, because a hostile text may be nothing else. */
  open: Uint8Array;
  /**
   * The first backslash and the first control character at or after the last position searched from. Kept, because
   * a search for every string would be quadratic in a text that has none.
   */
  nextEscape: number;
  nextControl: number;
}

const noBrackets = new Uint8Array(0);

export function createSource(text: string): Source {
  return { text, open: noBrackets, nextEscape: -1, nextControl: -1 };
}

/** Where the value ends. Uses its own stack, so that nesting is not limited by the call stack. */
export function valueEnd(source: Source, start: number): number {
  const { text } = source;
  let depth = 0;
  let at = start;
  for (;;) {
    const first = text.charCodeAt(at);
    if (first === braceOpen || first === bracketOpen) {
      push(source, depth, first);
      depth += 1;
      at = skipSpace(text, at + 1);
      if (text.charCodeAt(at) !== closing(first)) {
        if (first === braceOpen) at = memberStart(source, at);
        if (at === notJson) return notJson;
        continue;
      }
    } else {
      at = scalarEnd(source, at, first);
      if (at === notJson || depth === 0) return at;
      at = skipSpace(text, at);
    }
    // Here `at` is after a value and inside a container: close what ends here, then go to the next value.
    let container = source.open[depth - 1];
    while (text.charCodeAt(at) === closing(container)) {
      depth -= 1;
      if (depth === 0) return at + 1;
      container = source.open[depth - 1];
      at = skipSpace(text, at + 1);
    }
    if (text.charCodeAt(at) !== comma) return notJson;
    at = skipSpace(text, at + 1);
    if (container === braceOpen) at = memberStart(source, at);
    if (at === notJson) return notJson;
  }
}

function push(source: Source, depth: number, bracket: number): void {
  if (depth === source.open.length) {
    const { open } = source;
    source.open = new Uint8Array(Math.max(64, open.length * 2));
    source.open.set(open);
  }
  source.open[depth] = bracket;
}

/** From a member's name to its value. */
function memberStart(source: Source, at: number): number {
  const nameEnd = source.text.charCodeAt(at) === quote ? stringEnd(source, at) : notJson;
  return nameEnd === notJson ? notJson : valueStart(source.text, nameEnd);
}

export function valueStart(text: string, nameEnd: number): number {
  const at = skipSpace(text, nameEnd);
  return text.charCodeAt(at) === colon ? skipSpace(text, at + 1) : notJson;
}

export function scalarEnd(source: Source, at: number, first: number): number {
  if (first === quote) return stringEnd(source, at);
  if (isDigit(first)) return numberEnd(source.text, at);
  if (first === minus) return source.text.startsWith("Infinity", at + 1) ? at + 9 : numberEnd(source.text, at + 1);
  const literal = literals.get(first);
  return literal !== undefined && source.text.startsWith(literal, at) ? at + literal.length : notJson;
}

const literals = new Map(["true", "false", "null", "NaN", "Infinity"].map((word) => [word.charCodeAt(0), word]));

function numberEnd(text: string, start: number): number {
  // No digit may follow a leading zero.
  let at = text.charCodeAt(start) === zero ? start + 1 : digitsEnd(text, start);
  if (at !== notJson && text.charCodeAt(at) === dot) at = digitsEnd(text, at + 1);
  if (at === notJson || (text.charCodeAt(at) | 0x20) !== lowerE) return at;
  const sign = text.charCodeAt(at + 1);
  return digitsEnd(text, sign === plus || sign === minus ? at + 2 : at + 1);
}

function digitsEnd(text: string, start: number): number {
  let at = start;
  while (isDigit(text.charCodeAt(at))) at += 1;
  return at === start ? notJson : at;
}

/** Up to this length a loop is faster than `indexOf`. */
const shortString = 24;

export function stringEnd(source: Source, start: number): number {
  const { text } = source;
  for (let at = start + 1; at <= start + shortString; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) return at + 1;
    if (code === backslash || code < space) break;
  }
  return longStringEnd(source, start);
}

/** Long strings are most of a body: `indexOf` finds the next quote and the next escape. */
function longStringEnd(source: Source, start: number): number {
  const { text } = source;
  if (source.nextControl < start) source.nextControl = findControl(text, start);
  if (source.nextEscape < start) source.nextEscape = indexOrEnd(text, "\\", start);
  let end = indexOrEnd(text, '"', start + 1);
  while (source.nextEscape < end) {
    const after = escapeEnd(text, source.nextEscape);
    if (after === notJson) return notJson;
    if (end < after) end = indexOrEnd(text, '"', after);
    source.nextEscape = text.charCodeAt(after) === backslash ? after : indexOrEnd(text, "\\", after);
  }
  return end < text.length && source.nextControl > end ? end + 1 : notJson;
}

function indexOrEnd(text: string, searched: string, from: number): number {
  const index = text.indexOf(searched, from);
  return index === -1 ? text.length : index;
}

// oxlint-disable-next-line no-control-regex -- RFC 8259 section 7: exactly these are not allowed in a string
const control = /[\u0000-\u001f]/g;

function findControl(text: string, from: number): number {
  control.lastIndex = from;
  return control.test(text) ? control.lastIndex - 1 : text.length;
}

const escapeLetters = new Set(Array.from('"\\/bfnrt', (letter) => letter.charCodeAt(0)));

function escapeEnd(text: string, at: number): number {
  const letter = text.charCodeAt(at + 1);
  if (letter !== lowerU) return escapeLetters.has(letter) ? at + 2 : notJson;
  for (let digit = at + 2; digit < at + 6; digit += 1) if (!isHexDigit(text.charCodeAt(digit))) return notJson;
  return at + 6;
}

export function skipSpace(text: string, start: number): number {
  let at = start;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code !== space && code !== 0x0a && code !== 0x0d && code !== 0x09) return at;
    at += 1;
  }
}

export function isDigit(code: number): boolean {
  return code >= zero && code <= nine;
}

function isHexDigit(code: number): boolean {
  const lower = code | 0x20;
  return isDigit(code) || (lower >= lowerA && lower <= lowerF);
}

const closing = (open: number | undefined): number => (open === braceOpen ? braceClose : bracketClose);

const space = 0x20;
export const quote = 0x22;
const plus = 0x2b;
export const comma = 0x2c;
const minus = 0x2d;
const dot = 0x2e;
const zero = 0x30;
const nine = 0x39;
const colon = 0x3a;
export const bracketOpen = 0x5b;
export const bracketClose = 0x5d;
const backslash = 0x5c;
const lowerA = 0x61;
const lowerE = 0x65;
const lowerF = 0x66;
const lowerU = 0x75;
export const braceOpen = 0x7b;
export const braceClose = 0x7d;
