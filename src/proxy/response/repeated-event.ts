import { indexOfBytes } from "../json/bytes.ts";

/** How much output some events have. */
export interface OutputLength {
  /** Events with output. */
  events: number;
  /** UTF-16 units, as in a string's length. */
  characters: number;
}

/**
 * Knows the events of a stream that differ from one that was parsed only in the text of their output, as nearly all do. A
 * look at one takes a tenth of the time that parsing it takes.
 */
export interface RepeatedEvent {
  /**
   * @param json of an event that changes nothing but how much output there is
   * @param text all of its output
   */
  learn(json: Uint8Array, text: string): void;
  /** @param events whole ones @returns undefined unless each is such an event */
  lengthOf(events: Uint8Array): OutputLength | undefined;
}

/** Longer events are rare, and their memory is kept as long as the stream. */
const maxLength = 1024;
/** A stream whose every event has a number of its own repeats none. */
const maxLearned = 8;

const lineFeed = 0x0a;
const quote = 0x22;
const backslash = 0x5c;
const letterE = 0x65;
const dataField = Buffer.from("data: ");
const eventEnd = Buffer.from("\n\n");

export function createRepeatedEvent(): RepeatedEvent {
  /** What is before the text in its event, without the event's name, and what is after it, with the quotes. */
  let parts: { before: Uint8Array; after: Uint8Array } | undefined;
  /** How many were learned since one was repeated. */
  let learned = 0;

  return {
    learn(json, text) {
      if (learned === maxLearned || json.length > maxLength || json.includes(backslash)) return;
      const value = Buffer.from(`"${text}"`);
      const at = indexOfBytes(json, value, 0);
      // Where nothing is escaped, the only place is that of the text.
      if (at < 0 || indexOfBytes(json, value, at + 1) >= 0) return;
      learned += 1;
      const before = Buffer.concat([dataField, json.subarray(0, at + 1)]);
      parts = { before, after: Buffer.concat([json.subarray(at + value.length - 1), eventEnd]) };
    },
    lengthOf(events) {
      if (parts === undefined) return undefined;
      const { before, after } = parts;
      const length: OutputLength = { events: 0, characters: 0 };
      let at = 0;
      while (at < events.length) {
        // Its name says nothing that its JSON text does not say.
        const start = events[at] === letterE ? events.indexOf(lineFeed, at) + 1 : at;
        const textStart = start + before.length;
        const textEnd = isAt(events, start, before) ? events.indexOf(quote, textStart) : -1;
        if (textEnd < 0 || !isAt(events, textEnd, after)) return undefined;
        const characters = countCharacters(events, textStart, textEnd);
        if (characters === undefined) return undefined;
        length.events += characters === 0 ? 0 : 1;
        length.characters += characters;
        at = textEnd + after.length;
      }
      learned = 0;
      return length;
    },
  };
}

function isAt(bytes: Uint8Array, from: number, wanted: Uint8Array): boolean {
  for (let at = 0; at < wanted.length; at++) if (bytes[from + at] !== wanted[at]) return false;
  return true;
}

/** @returns undefined if something is escaped, or is no JSON */
function countCharacters(utf8: Uint8Array, from: number, to: number): number | undefined {
  let count = 0;
  for (let at = from; at < to; at++) {
    const byte = utf8[at] ?? 0;
    if (byte === backslash || byte < 0x20) return undefined;
    // The bytes of a character after its first begin with the bits 10. One of four bytes is two units.
    if (byte < 0x80 || byte >= 0xc0) count += byte >= 0xf0 ? 2 : 1;
  }
  return count;
}
