import { contentOf, decodeHead, decodeString, decodeTail, isString } from "../json/decode.ts";
import { createSlot, type JsonSlot, type Span } from "../json/slots.ts";
import type { Sample } from "./language.ts";

/** One string or the strings of several parts, without their quotes. */
export type Text = readonly Span[];

/** A slot for a text as messages hold it: a string, or an array whose parts of type `text` are strings. */
export interface TextSlot {
  slot: JsonSlot;
  /** Empty if the value in the slot has no text. */
  getText(): Text;
  /** Undefined if the value is not an array with text. Never changed after its array has ended. */
  findParts(): Text | undefined;
}

const noText: Text = [];
const noPart: Span = { start: 0, end: 0 };
/** If a text has more parts, those in the middle are not read. */
const maxParts = 64;

export function createTextSlot(): TextSlot {
  const type = createSlot();
  const text = createSlot();
  let parts: Span[] = [];
  const part = createSlot({
    members: { type, text },
    onValue(bytes) {
      if (part.kind !== "object" || !isString(bytes, type, "text")) return;
      const content = text.kind === "string" ? contentOf(text) : noPart;
      if (parts.length < maxParts) parts.push(content);
      else parts.copyWithin(maxParts / 2, maxParts / 2 + 1)[maxParts - 1] = content;
    },
  });
  const slot = createSlot({
    element: part,
    onStart() {
      if (parts.length > 0) parts = [];
    },
  });
  const findParts = (): Text | undefined => (slot.kind === "array" && parts.length > 0 ? parts : undefined);
  return { slot, findParts, getText: () => (slot.kind === "string" ? [contentOf(slot)] : (findParts() ?? noText)) };
}

/** The latest of any number of texts, in memory for those kept. */
export interface LatestTexts {
  /** Keeps what the slot holds, unless it is empty. */
  keep(text: TextSlot): void;
  clear(): void;
  /** In the order in which they were kept. */
  list(): Text[];
}

interface KeptText {
  start: number;
  end: number;
  parts: Text | undefined;
}

export function createLatestTexts(maxTexts: number): LatestTexts {
  /** A ring: text number `n` is at `n % maxTexts`. Its objects are reused, because a body may have millions of texts. */
  const ring: KeptText[] = [];
  let count = 0;
  return {
    keep({ slot, findParts }) {
      const parts = findParts();
      if (parts === undefined ? slot.kind !== "string" || slot.end - slot.start === 2 : isEmpty(parts)) return;
      const kept = (ring[count % maxTexts] ??= { start: 0, end: 0, parts: undefined });
      kept.start = slot.start + 1;
      kept.end = slot.end - 1;
      kept.parts = parts;
      count += 1;
    },
    clear() {
      count = 0;
    },
    list() {
      const oldest = count % maxTexts;
      const kept = count <= maxTexts ? ring.slice(0, count) : [...ring.slice(oldest), ...ring.slice(0, oldest)];
      return kept.map((text) => text.parts ?? [text]);
    },
  };
}

function isEmpty(text: Text): boolean {
  const [first] = text;
  return first === undefined || (text.length === 1 && first.start === first.end);
}

/** Of a long text only as much as its sample needs. */
export function decodeText(bytes: Uint8Array, text: Text, { head, tail }: Sample): string {
  const length = text.reduce((sum, { start, end }) => sum + end - start, text.length);
  if (length <= 8 * (head + tail)) return text.map((part) => decodeString(bytes, part)).join("\n");
  const start = joinUntil(head + 1, text, (part) => decodeHead(bytes, part, head + 1));
  const end = joinUntil(tail, text.toReversed(), (part) => decodeTail(bytes, part, tail)).toReversed();
  return `${start.join("\n").slice(0, head + 1)}${end.join("\n").slice(-tail)}`;
}

function joinUntil(length: number, text: Text, decode: (part: Span) => string): string[] {
  const decoded: string[] = [];
  let missing = length;
  for (const part of text) {
    if (missing <= 0) break;
    const piece = decode(part);
    decoded.push(piece);
    missing -= piece.length + 1;
  }
  return decoded;
}
