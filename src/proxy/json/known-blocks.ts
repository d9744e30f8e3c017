import { blockEnd, type ReadBlock, readUntil } from "./read.ts";
import { indexOfBytes, partOf } from "./bytes.ts";
import { createNotes, type JsonScan, maxSteps, name as expectsName, repeatSteps } from "./scan-state.ts";
import { minus, notJson } from "./tokens.ts";

/** What was found out about a block by what stands in it and before it. */
interface KnownBlock {
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
/** What a block takes beside its steps, as if it were steps. */
const stepsOfBlock = 32;

/** A hash of 52 bits. With a seed that no client knows, none can choose two texts with the same. */
export type Hash = (text: string | Uint8Array, seed: number) => number;

/** Reads the blocks of one text, in turn. @param shape a name for what is watched in it */
export type KnownBlocks = (shape: string) => ReadBlock;

export interface KnownBlocksOptions {
  hash: Hash;
  /**
   * Members of the document, as they are written, that come again where what is before them has changed: blocks are known
   * from their beginning on too.
   */
  seams: readonly string[];
  /** At least so many steps are kept, and at most twice as many; one takes 4 bytes. An agent's block has 20 to 60. */
  maxKept?: number;
}

/** A hostile text has any number of them. */
const maxSeams = 8;

/**
 * Agents send their tools and all earlier turns again with each turn, byte for byte: to know these by a hash takes a fifth of
 * the time to read them. No text is kept.
 */
export function createKnownBlocks({ hash, seams, maxKept = 1_000_000 }: KnownBlocksOptions): KnownBlocks {
  const marks = seams.map((seam) => Buffer.from(seam));
  const maxMarkLength = Math.max(...marks.map((mark) => mark.length));
  const notes = createNotes();
  let recent = new Map<number, KnownBlock>();
  let older = recent;
  let kept = 0;

  function keep(name: number, block: KnownBlock): void {
    kept += block.steps.length + stepsOfBlock;
    if (kept > maxKept) {
      older = recent;
      recent = new Map();
      kept = 0;
    }
    recent.set(name, block);
  }

  function find(name: number): KnownBlock | undefined {
    const block = recent.get(name) ?? older.get(name);
    if (block !== undefined && !recent.has(name)) keep(name, block);
    return block;
  }

  /** @returns where the first begins that does so behind `from`, but not behind `end` */
  function findSeam(bytes: Uint8Array, from: number, end: number): number | undefined {
    const searched = bytes.subarray(from + 1, end + maxMarkLength);
    let first: number | undefined;
    for (const mark of marks) {
      const at = from + 1 + indexOfBytes(searched, mark, 0);
      if (at > from && at <= Math.min(end, first ?? end)) first = at;
    }
    return first;
  }

  function readNew(scan: JsonScan, from: number, end: number, name: number): number {
    notes.from = from;
    notes.count = 0;
    scan.notes = notes;
    const read = readUntil(scan, from, end);
    scan.notes = undefined;
    // Where an escape or a literal reaches over the end, what it is depends on what follows.
    if (read === notJson || scan.at !== end || scan.bytes[end - 1] === minus) return read;
    const { expected, numberState } = scan;
    const { depth, objects } = scan.nesting;
    if (depth > maxDepth || notes.count > maxSteps) return end;
    const steps = notes.steps.slice(0, notes.count);
    const nameStart = scan.nameStart - from;
    keep(name, { steps, expected, depth, objects: objects[0] ?? 0, nameStart, numberState });
    return end;
  }

  return (shape) => {
    const afterSeam = hash(shape, 1);
    let name = hash(shape, 0);
    let isAfterSeam = false;
    let seam: number | undefined;
    let seamsLeft = maxSeams;

    return (scan, from) => {
      const { bytes } = scan;
      if (from === seam && isBetweenMembers(scan)) {
        name = afterSeam;
        isAfterSeam = true;
      }
      const end = blockEnd(bytes, from);
      const before = name;
      name = hash(partOf(bytes, from, end), before);
      const block = find(name);
      if (block !== undefined) return passOver(scan, from, end, block);
      seam = seamsLeft > 0 ? findSeam(bytes, from, end) : undefined;
      if (seam !== undefined) seamsLeft -= 1;
      if (seam !== undefined && seam < end) {
        // Named by all of this block, what begins at the seam would be taken for the same text behind the block.
        name = hash(partOf(bytes, from, seam), before);
        return readUntil(scan, from, seam);
      }
      // Behind its messages a text ends as it did a turn before, and nowhere else.
      return end < bytes.length || isAfterSeam ? readNew(scan, from, end, name) : readUntil(scan, from, end);
    };
  };
}

function passOver(scan: JsonScan, from: number, end: number, block: KnownBlock): number {
  repeatSteps(scan, from, block.steps);
  scan.at = end;
  scan.expected = block.expected;
  scan.nameStart = from + block.nameStart;
  scan.numberState = block.numberState;
  scan.nesting.depth = block.depth;
  scan.nesting.objects[0] = block.objects;
  return end;
}

/** Whether the scan is before the name of one of the document's own members, wherever that stands. */
const isBetweenMembers = ({ nesting, expected }: JsonScan): boolean => nesting.depth === 1 && expected === expectsName;
