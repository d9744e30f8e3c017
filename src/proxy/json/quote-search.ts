import { backslash, findQuote, notJson, quote } from "./tokens.ts";

/**
 * Finds where strings end, sixteen bytes at a time: an agent's body is scanned in half of the time. JavaScript has no
 * instructions for that, so the search is a WebAssembly function, which is put together here of its instructions. It reads a
 * window of the text, which is copied into its memory.
 */

type Code = readonly number[];

/** The function's parameters and variables: all are 32-bit integers but the last, which holds sixteen bytes. */
const [at, limit, quotes, backslashes, escaped, wrong, ends, part] = [0, 1, 2, 3, 4, 5, 6, 7];

const get = (variable: number): Code => [0x20, variable];
const set = (variable: number, value: Code): Code => [...value, 0x21, variable];
/** Of at most 27 bits. */
const number = (value: number): Code => [
  0x41,
  0x80 | (value & 0x7f),
  0x80 | ((value >> 7) & 0x7f),
  0x80 | ((value >> 14) & 0x7f),
  (value >> 21) & 0x7f,
];
const binary = (instruction: number) => (a: Code, b: Code) => [...a, ...b, instruction];
const [isEqual, isAtLeast, add, subtract] = [binary(0x46), binary(0x4f), binary(0x6a), binary(0x6b)];
const [and, or, xor, shiftLeft, shiftRight] = [binary(0x71), binary(0x72), binary(0x73), binary(0x74), binary(0x76)];
const not = (value: Code): Code => xor(value, number(-1));
const isZero = (value: Code): Code => [...value, 0x45];
const lowest = (bits: Code): Code => [...bits, 0x68];
const below = (bits: Code): Code => subtract(and(bits, subtract(number(0), bits)), number(1));
const byteAt = (position: Code, offset = 0): Code => [...position, 0x2d, 0, offset];
const when = (condition: Code, ...then: Code[]): Code => [...condition, 0x04, 0x40, ...then.flat(), 0x0b];
const returns = (value: Code): Code => [...value, 0x0f];
const repeats = (...steps: Code[]): Code => [0x03, 0x40, ...steps.flat(), 0x0b];
/** @param depth how many `when` are to be left */
const again = (depth: number): Code => [0x0c, depth];

const sixteen = (byteOf: (index: number) => number): Code => [
  0xfd,
  0x0c,
  ...Array.from({ length: 16 }, (_, index) => byteOf(index)),
];
const each = (byte: number): Code => sixteen(() => byte);
const ofSixteen = (instruction: number) => (a: Code, b: Code) => [...a, ...b, 0xfd, instruction];
const [pick, areEqual, areLess] = [ofSixteen(0x0e), ofSixteen(0x23), ofSixteen(0x26)];
const [bothOf, eitherOf] = [ofSixteen(0x4e), ofSixteen(0x50)];
/** A bit for each byte, the first one the lowest. */
const bitsOf = (comparison: Code): Code => [...comparison, 0xfd, 0x64];

const codeOf = (character: string): number => character.charCodeAt(0);

/** Of the letters of escapes but `r`, `u` and the quote, each at the lower half of its code; no other byte is at its own. */
const letters = sixteen((index) => Buffer.from("btfn/").find((code) => (code & 0x0f) === index) ?? index ^ 1);
const isLetter = eitherOf(
  areEqual(get(part), each(codeOf("r"))),
  areEqual(get(part), pick(letters, bothOf(get(part), each(0x0f)))),
);

const starts = and(get(backslashes), not(shiftLeft(get(backslashes), number(1))));
/** Of runs of backslashes that begin at an even or at an odd place: the bytes after those of odd length. */
const afterOddRuns = (places: number, after: number): Code =>
  and(and(add(get(backslashes), and(starts, number(places))), not(get(backslashes))), number(after));

const isHex = (offset: number): Code => byteAt(byteAt(get(at), offset));
const isUnicode = and(
  isEqual(byteAt(get(at), 1), number(codeOf("u"))),
  and(and(isHex(2), isHex(3)), and(isHex(4), isHex(5))),
);

const search = repeats(
  when(isAtLeast(get(at), get(limit)), returns(get(at))),
  set(part, [...get(at), 0xfd, 0x00, 0, 0]),
  set(quotes, bitsOf(areEqual(get(part), each(quote)))),
  set(backslashes, bitsOf(areEqual(get(part), each(backslash)))),
  // What is escaped, and what of that is none of the letters: `u`, or an error.
  set(escaped, or(afterOddRuns(0x5555, 0xaaaaa), afterOddRuns(0xaaaa, 0x55555))),
  set(wrong, and(and(get(escaped), number(0xffff)), not(or(get(quotes), bitsOf(isLetter))))),
  // The quotes that end the string, and what no string may hold.
  set(ends, or(and(get(quotes), not(get(escaped))), bitsOf(areLess(get(part), each(0x20))))),
  when(
    isZero(and(get(wrong), below(get(ends)))),
    // A backslash that is the last of the sixteen is read again, with what it escapes.
    when(
      isZero(get(ends)),
      set(at, subtract(add(get(at), number(16)), and(shiftRight(get(escaped), number(16)), number(1)))),
      again(2),
    ),
    set(at, add(get(at), lowest(get(ends)))),
    when(or(isAtLeast(get(at), get(limit)), isEqual(byteAt(get(at)), number(quote))), returns(get(at))),
    returns(number(notJson)),
  ),
  // There is a wrong one before the first end.
  set(at, subtract(add(get(at), lowest(get(wrong))), number(1))),
  when(isAtLeast(get(at), get(limit)), returns(get(at))),
  when(isZero(isUnicode), returns(number(notJson))),
  set(at, add(get(at), number(6))),
  again(0),
);

const [i32, v128] = [0x7f, 0x7b];
const section = (id: number, content: Code): Code => [id, ...lengthAnd(content)];
const lengthAnd = (content: Code): Code => [0x80 | (content.length & 0x7f), content.length >> 7, ...content];
const exported = (name: string, kind: number): Code => [name.length, ...Buffer.from(name), kind, 0];

/** A module with one page of memory and the one function. */
const moduleOf = (code: Code): Uint8Array<ArrayBuffer> =>
  Uint8Array.from([
    ...Buffer.from("\0asm\u0001\0\0\0"),
    ...section(1, [1, 0x60, 2, i32, i32, 1, i32]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, 1]),
    ...section(7, [2, ...exported("memory", 2), ...exported("find", 0)]),
    ...section(10, [1, ...lengthAnd([2, ends - limit, i32, 1, v128, ...code, 0x00, 0x0b])]),
  ]);

interface Search {
  memory: Uint8Array;
  find: (from: number, limit: number) => number;
}

/** Undefined on a processor that lacks the instructions. */
function createSearch(): Search | undefined {
  const code = moduleOf(search);
  if (!WebAssembly.validate(code)) return undefined;
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code));
  const { memory, find } = exports as unknown as { memory: WebAssembly.Memory; find: Search["find"] };
  const held = new Uint8Array(memory.buffer);
  for (const digit of "0123456789abcdefABCDEF") held[codeOf(digit)] = 1;
  return { memory: held, find };
}

const native = createSearch();

/** In the memory, after the table of hexadecimal digits. */
const windowStart = 256;
const windowBytes = 16 * 1024;
/** The search reads so far beyond what it is asked for, at most. */
const beyondBytes = 32;
/** Shorter texts are not worth the copy. */
const leastBytes = 2048;

/** A text that is searched from its start to its end. */
export interface SearchedText {
  readonly bytes: Uint8Array;
  /** No other text has it; 0: it is not searched natively. */
  readonly id: number;
}

let texts = 0;

export const idOf = (bytes: Uint8Array): number => (native === undefined || bytes.length < leastBytes ? 0 : ++texts);

/** Whose part is in the window, and which. */
let [owner, start, end] = [0, 0, 0];

function load({ bytes: text, id }: SearchedText, memory: Uint8Array, from: number): void {
  [owner, start, end] = [id, from, Math.min(from + windowBytes, text.length)];
  const copied = Math.min(end + beyondBytes, text.length) - from;
  // Without a view of the text.
  Buffer.prototype.copy.call(text, memory, windowStart, from, from + copied);
  memory.fill(0, windowStart + copied, windowStart + copied + beyondBytes);
}

/** As `findQuote`. */
export function findQuoteIn(text: SearchedText, from: number, until: number): number {
  if (text.id === 0 || native === undefined) return findQuote(text.bytes, from, until);
  let position = from;
  while (position < until) {
    if (text.id !== owner || position < start || position >= end) load(text, native.memory, position);
    const offset = windowStart - start;
    const found = native.find(position + offset, Math.min(until, end) + offset);
    if (found === notJson) return notJson;
    position = found - offset;
    if (position < end) break;
  }
  return position;
}
