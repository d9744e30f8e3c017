import { areSameBytes, indexOfBytes, partOf } from "./bytes.ts";
import { blockEnd, type ReadBlock, readUntil } from "./read.ts";
import { createNotes, type JsonScan, maxSteps, type Notes, name as expectsName, repeatSteps } from "./scan.ts";
import { minus, notJson } from "./slots.ts";

/** What is before a block: another one, or nothing where a chain of blocks begins. */
interface Place {
  /** Of the names of the blocks behind it. */
  seed: number;
  /** The name of the block that was looked for last behind it; mostly it is that one again. */
  next: number;
}

/** A text as far as the end of the block is known by what stands in the block and what is before it. */
interface KnownBlock {
  name: number;
  before: Place;
  text: Uint8Array;
  /** Its end, for the block behind it. */
  end: Place;
  /** Undefined if it has to be read each time. */
  effect: Effect | undefined;
}

/** What was found out when the block was read. */
interface Effect {
  /** What it does to the slots (see `repeatSteps`). */
  steps: Int32Array;
  /** How the scan goes on behind it. */
  expected: number;
  depth: number;
  /** The first word of `Nesting.objects`. */
  objects: number;
  /** From the start of the block; may be in one before it. */
  nameStart: number;
  numberState: number;
}

/** The containers in that word. */
const maxDepth = 31;
/** What a block takes beside its text and steps. */
const overheadBytes = 300;

/** A hash of 52 bits. A client may find two texts with the same, whatever the seed. */
export type Hash = (text: string | Uint8Array, seed: number) => number;

/** Reads the blocks of one text, in turn. @param shape a name for what is watched in it */
export type KnownBlocks = (shape: string) => ReadBlock;

interface KnownBlocksOptions {
  hash: Hash;
  /**
   * Members of the document, as they are written, that come again where what is before them has changed: blocks are known
   * from their beginning on too.
   */
  seams: readonly string[];
  /** At least so much is kept, and at most twice as much. */
  maxKeptBytes?: number;
  areSame?: (a: Uint8Array, b: Uint8Array) => boolean;
}

/** A hostile text has any number of them. */
const maxSeams = 8;

/**
 * Agents send their tools and all earlier turns again with each turn, byte for byte: to compare these takes a fifth of the
 * time to read them. Their texts are kept for that: of two texts with the same hash, one could hide what the other has.
 */
export function createKnownBlocks(options: KnownBlocksOptions): KnownBlocks {
  const blocks = createKeptBlocks(options);
  const findSeam = createSeamSearch(options.seams);
  const notes = createNotes();

  return (shape) => {
    let before = blocks.begin(shape);
    let isAfterSeam = false;
    let seamsLeft = maxSeams;

    return (scan, from) => {
      const { bytes } = scan;
      const end = blockEnd(bytes, from);
      const text = partOf(bytes, from, end);
      const known = blocks.find(text, before);
      if (known?.effect !== undefined) {
        before = known.end;
        return passOver(scan, from, end, known.effect);
      }
      notes.from = from;
      notes.count = 0;
      scan.notes = notes;
      let read = from;
      while (read !== notJson && read < end) {
        const seam = seamsLeft > 0 ? findSeam(bytes, read, end) : undefined;
        read = readUntil(scan, read, seam ?? end);
        if (seam === undefined) continue;
        seamsLeft -= 1;
        if (!isBetweenMembers(scan)) continue;
        before = blocks.begin(`${shape}, from a seam on`);
        isAfterSeam = true;
        return read;
      }
      // Behind its messages a text ends as it did a turn before, and nowhere else.
      const isKept = read !== notJson && (end < bytes.length || isAfterSeam);
      if (isKept) before = (known ?? blocks.add(text, before, effectOf(scan, notes, end))).end;
      return read;
    };
  };
}

/** Those that came last, each found by its text and what is before it. */
function createKeptBlocks({ hash, maxKeptBytes = 16 * 1024 * 1024, areSame = areSameBytes }: KnownBlocksOptions) {
  const begins = new Map<string, Place>();
  let recent = new Map<number, KnownBlock>();
  let older = recent;
  let [keptBytes, count] = [0, 0];

  function keep(block: KnownBlock): KnownBlock {
    keptBytes += block.text.length + (block.effect?.steps.byteLength ?? 0) + overheadBytes;
    if (keptBytes > maxKeptBytes) {
      older = recent;
      recent = new Map();
      keptBytes = 0;
    }
    recent.set(block.name, block);
    return block;
  }

  function findNext(text: Uint8Array, before: Place): KnownBlock | undefined {
    const block = recent.get(before.next) ?? older.get(before.next);
    return block?.before === before && areSame(block.text, text) ? block : undefined;
  }

  return {
    begin: (shape: string): Place => begins.getOrInsertComputed(shape, () => ({ seed: hash(shape, 0), next: -1 })),
    find(text: Uint8Array, before: Place): KnownBlock | undefined {
      let block = findNext(text, before);
      if (block === undefined) {
        before.next = hash(text, before.seed);
        block = findNext(text, before);
      }
      return block === undefined || recent.has(block.name) ? block : keep(block);
    },
    /** A block that was just looked for. */
    add(text: Uint8Array, before: Place, effect: Effect | undefined): KnownBlock {
      count += 1;
      return keep({ name: before.next, before, text: new Uint8Array(text), end: { seed: count, next: -1 }, effect });
    },
  };
}

/** @returns finds where the first of them begins that does so behind `from`, but not behind `end` */
function createSeamSearch(seams: readonly string[]) {
  const marks = seams.map((seam) => Buffer.from(seam));
  const maxMarkLength = Math.max(...marks.map((mark) => mark.length));
  return (bytes: Uint8Array, from: number, end: number): number | undefined => {
    const searched = bytes.subarray(from + 1, end + maxMarkLength);
    let first: number | undefined;
    for (const mark of marks) {
      const at = from + 1 + indexOfBytes(searched, mark, 0);
      if (at > from && at <= Math.min(end, first ?? end)) first = at;
    }
    return first;
  };
}

/** @param notes of the block that the scan has read. @returns undefined if what it does depends on what follows, or takes much */
function effectOf(scan: JsonScan, { from, steps, count }: Notes, end: number): Effect | undefined {
  const { expected, numberState, nesting } = scan;
  // An escape or a literal reaches over the end.
  if (scan.at !== end || scan.bytes[end - 1] === minus) return undefined;
  if (nesting.depth > maxDepth || count > maxSteps) return undefined;
  const { depth, objects } = nesting;
  const nameStart = scan.nameStart - from;
  return { steps: steps.slice(0, count), expected, depth, objects: objects[0] ?? 0, nameStart, numberState };
}

function passOver(scan: JsonScan, from: number, end: number, effect: Effect): number {
  scan.notes = undefined;
  repeatSteps(scan, from, effect.steps);
  scan.at = end;
  scan.expected = effect.expected;
  scan.nameStart = from + effect.nameStart;
  scan.numberState = effect.numberState;
  scan.nesting.depth = effect.depth;
  scan.nesting.objects[0] = effect.objects;
  return end;
}

/** Whether the scan is before the name of one of the document's own members, wherever that stands. */
const isBetweenMembers = ({ nesting, expected }: JsonScan): boolean => nesting.depth === 1 && expected === expectsName;
