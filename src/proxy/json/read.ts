// Reads and edits JSON text as bytes, by position. It knows nothing of the product.
//
// A scan fills slots (`slots.ts`), which are the places that are watched, with where their values stand; edits are
// collected and applied at once (`edit.ts`). It keeps true: every byte outside an edit stays as it came; memory is a
// bit for each open container, and no step takes long, whatever the text: a long one is read in portions, with turns
// for others between. A block that came before is passed over by what was found then (`known-blocks.ts`), if its text
// is the same: a client may find two texts with one hash.

import { isUtf8, isWhiteSpace, partOf } from "./bytes.ts";
import { continueScan, isComplete, type JsonScan, startScan } from "./scan.ts";
import type { JsonSlot } from "./slots.ts";
import { backslash, braceClose, braceOpen, bracketClose, colon, findQuote, notJson, quote } from "./slots.ts";

/**
 * A computation that yields after every step of at most about a millisecond, so that one code serves short texts, which
 * are done at once, and long ones, which must not keep others waiting.
 */
export type Steps<T> = Generator<void, T>;

interface Portions {
  /** How long steps run before the next wait. */
  portionMs: number;
  /** Milliseconds from any start. */
  now: () => number;
  /** Resolves at the start of the next portion of this party. */
  waitForTurn: (party?: Party) => Promise<void>;
}

/** For whom something is computed: however much that is, others wait for one portion of it. */
export type Party = number | undefined;

export async function runInPortions<T>(steps: Steps<T>, portions: Portions, party?: Party): Promise<T> {
  const { portionMs, now, waitForTurn } = portions;
  for (;;) {
    await waitForTurn(party);
    const portionEnd = now() + portionMs;
    do {
      const step = steps.next();
      if (step.done === true) return step.value;
    } while (now() < portionEnd);
  }
}

/** What a small request needs of the event loop until it waits for its backend, in several ticks. */
const gapMs = 1;

/**
 * Portions of which, however many computations share them, only one runs at a time and a gap for others follows each. Parties
 * take turns, and the computations of a party take turns among themselves.
 */
export function createPortions(portionMs: number): Portions {
  const now = performance.now.bind(performance);
  /** Parties, and what waits of each, in the order in which they get a turn. A turn is scheduled if and only if there is one. */
  const waiting = new Map<Party, (() => void)[]>();
  let nextTurnAt = -Infinity;

  function scheduleTurn(): void {
    const waitMs = nextTurnAt - now();
    if (waitMs > 0) setTimeout(startTurn, waitMs);
    else setImmediate(startTurn);
  }

  function startTurn(): void {
    nextTurnAt = now() + portionMs + gapMs;
    const [next] = waiting;
    if (next === undefined) return;
    const [party, ofParty] = next;
    waiting.delete(party);
    ofParty.shift()?.();
    if (ofParty.length > 0) waiting.set(party, ofParty);
    if (waiting.size > 0) scheduleTurn();
  }

  const waitForTurn = (party?: Party): Promise<void> =>
    new Promise((resolve) => {
      if (waiting.size === 0) scheduleTurn();
      waiting.getOrInsertComputed(party, () => []).push(resolve);
    });
  return { portionMs, now, waitForTurn };
}

/** One for all that shares the event loop, servers in one process included. */
export const eventLoopPortions = createPortions(2);

/** Most texts of this length take a millisecond or less. Portions leave gaps, which all requests would share. */
export const maxBytesAtOnce = 512 * 1024;

/** An ordinary text of that length is done in this time on a slow machine too. */
const portionsAtOnce = 2;

/**
 * Runs what is to be done with a text at once if that is short. How long a text takes depends on what is in it: what is left
 * of a hostile one after the time of two portions waits as a long one does.
 * @returns a promise for what takes portions
 */
export function runByLength<T>(
  steps: Steps<T>,
  bytes: number,
  party: Party,
  portions = eventLoopPortions,
): T | Promise<T> {
  if (bytes > maxBytesAtOnce) return runInPortions(steps, portions, party);
  // Most texts are done sooner than a look at the clock.
  const isShort = bytes <= maxBlockBytes;
  const end = isShort ? Infinity : portions.now() + portionsAtOnce * portions.portionMs;
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (!isShort && portions.now() >= end) return runInPortions(steps, portions, party);
  }
}

/** A text is read in blocks of at most this: one takes 0.01 ms, or half a millisecond for the worst before it is compiled. */
export const maxBlockBytes = 8 * 1024;

/** Reads the next block of a text. @returns where it ends, or `notJson`: it is no JSON in valid UTF-8 */
export type ReadBlock = (scan: JsonScan, from: number) => number;

export function readUntil(scan: JsonScan, from: number, end = blockEnd(scan.bytes, from)): number {
  if (!isUtf8(partOf(scan.bytes, from, end))) return notJson;
  continueScan(scan, end);
  return scan.at === notJson ? notJson : end;
}

/**
 * Fills the slots below `root` from a text of any size; what they hold after a text that is not JSON is meaningless. Blanks
 * of any kind may stand around it.
 * @param read reads the text block by block
 * @returns whether it is JSON in valid UTF-8
 */
export function* readJsonInSteps(bytes: Uint8Array, root: JsonSlot, read: ReadBlock = readUntil): Steps<boolean> {
  const scan = startScan(bytes, root, true);
  let from = 0;
  while (from < bytes.length) {
    from = read(scan, from);
    if (from === notJson) return false;
    yield;
  }
  return isComplete(scan);
}

/** The same at once, for short texts, without a check of their UTF-8, and with nothing but JSON's white space around them. */
export function readJson(bytes: Uint8Array, root: JsonSlot): boolean {
  const scan = startScan(bytes, root);
  continueScan(scan, bytes.length);
  return isComplete(scan);
}

/** What strings that are values of certain members, at any depth, alone or in a list, are looked for with. */
interface NamedStrings<Name> {
  /** Gets the ends of each name. @returns undefined if its values are of no interest */
  find: (start: number, end: number) => Name | undefined;
  /** Gets what `find` returned, and the ends of each string. */
  onString: (name: Name, start: number, end: number) => void;
}

/** Whether the text is JSON does not matter. */
export function* readNamedStrings<Name>(bytes: Uint8Array, wanted: NamedStrings<Name>): Steps<void> {
  const scan = createNamedScan(bytes, wanted);
  for (let limit = 0; limit < bytes.length; yield) scan((limit = Math.min(limit + maxBlockBytes, bytes.length)));
}

/** @returns reads on up to a limit. No generator, which would take three times as long */
function createNamedScan<Name>(bytes: Uint8Array, { find, onString }: NamedStrings<Name>): (limit: number) => void {
  let at = 0;
  let name: Name | undefined;
  /** Of the latest string, while it is not known whether it is a name; 0: there is none. */
  let [start, end] = [0, 0];
  let isInString = false;
  return (limit) => {
    while (at < limit) {
      if (isInString) {
        at = findQuote(bytes, at, limit);
        if (at === notJson) at = bytes.length;
        if (at >= limit) return;
        isInString = false;
        end = at;
        at += 1;
        continue;
      }
      const byte = bytes[at];
      at += 1;
      if (isWhiteSpace(byte)) continue;
      if (start > 0) {
        if (byte === colon) name = find(start, end);
        else if (name !== undefined) onString(name, start, end);
        start = 0;
      }
      if (byte === quote) {
        isInString = true;
        start = at;
      } else if (byte === bracketClose || byte === braceOpen || byte === braceClose) name = undefined;
    }
  };
}

/** How far before the end of a block a place is looked for that lies in no token but a string. */
const maxMoved = 64;

/** Where no escape, literal or number reaches over the end, if there is such a place near. Depends on what is before it. */
export function blockEnd(bytes: Uint8Array, from: number): number {
  const end = from + maxBlockBytes;
  if (end >= bytes.length) return bytes.length;
  for (let at = end - 1; at > end - maxMoved; at -= 1) {
    const before = bytes[at - 1];
    if (before === space || (bytes[at] === backslash && before !== backslash)) return at;
  }
  return characterStart(bytes, end);
}

const space = 0x20;

/** The start of the character at `at`, in valid UTF-8. */
function characterStart(bytes: Uint8Array, at: number): number {
  let start = at;
  // A continuation byte is not the first of its character.
  while (at - start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1;
  return start;
}
