import { lastChunkMembers, readCompletionChunk, type CompletionChunk, type MemberSpan } from "./completion-chunk.ts";
import { createEventSplitter } from "../sse/event-splitter.ts";
import { hasMember, isWhiteSpace } from "../json/bytes.ts";
import type { UsageAdded } from "../rewrite/stream-options.ts";

/** Removes from an event stream what the backend only sent because the proxy requested it. */
export interface StreamUsageFilter {
  /** @returns what the client gets now; empty if the bytes are still held */
  push(chunk: Uint8Array): Uint8Array;
  /** @returns what is still held */
  end(): Uint8Array;
}

/** An event that is to be sent, and its edits. */
interface Outgoing {
  event: Uint8Array;
  chunk: CompletionChunk;
  edits: FrameEdit[];
  /** A server may send usage in the last chunk of a choice unasked; the next chunk decides. */
  usageInDoubt: boolean;
}

interface FrameEdit extends MemberSpan {
  text: string;
}

const nothing = new Uint8Array();
const usageName = Buffer.from('usage"');
const finishReasonName = Buffer.from('finish_reason"');
const choicesName = Buffer.from('choices"');
const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;

/**
 * Makes a stream byte for byte what it would have been without the proxy's `stream_options`. That depends on the server,
 * and is read off the stream itself:
 *
 * - The chunk with usage and no choices is dropped. The members that llama.cpp and vLLM move from the chunk before into
 *   that chunk (`lastChunkMembers`) are moved back; so the chunk that ends a choice waits for the next event.
 * - `"usage":null` in other chunks stays if the server writes out what is not set, and is removed if it was requested
 *   (see `CompletionChunk`).
 * - Usage beside choices is removed, or turned back into null, once a chunk in the middle had some. Usage in a last chunk
 *   only was not requested: Mistral, DeepSeek and llama.cpp's legacy completions always send it there.
 *
 * Known differences: with several choices at a time, vLLM's fingerprint in the chunks that end all but the last choice;
 * and the nulls that older vLLM wrote into legacy completions (under `continuous`) and chat (if usage was requested).
 *
 * @returns undefined if nothing was added
 */
export function createStreamUsageFilter(added: UsageAdded): StreamUsageFilter | undefined {
  const { includeUsage, continuousUsage } = added;
  if (!includeUsage && !continuousUsage) return undefined;
  const splitter = createEventSplitter();
  const detector = createInjectedUsageDetector(added);
  /** The chunk that ended a choice, until the next event decides on its edits. */
  let held: Outgoing | undefined;

  function pass(event: Uint8Array): Uint8Array[] {
    const chunk = detector.mayEdit(event) ? readCompletionChunk(event) : undefined;
    const before = release(chunk);
    if (chunk === undefined) return [...before, event];
    if (isUsageAlone(chunk)) return includeUsage ? before : [...before, event];
    const outgoing = detector.inspect(event, chunk);
    const waits = chunk.isFinal && (includeUsage || outgoing.usageInDoubt);
    if (!waits) return [...before, edited(outgoing)];
    held = outgoing;
    return before;
  }

  /** @param next the chunk after the held one; undefined if the next event is not a chunk */
  function release(next: CompletionChunk | undefined): Uint8Array[] {
    if (held === undefined) return [];
    const outgoing = held;
    held = undefined;
    if (next?.usage === "object") detector.confirm(outgoing);
    if (includeUsage && next !== undefined && isUsageAlone(next))
      outgoing.edits.push(movedMembers(outgoing.chunk, next));
    return [edited(outgoing)];
  }

  return {
    push: (bytes) => joined(splitter.push(bytes).flatMap(pass)),
    end() {
      const rest = splitter.end();
      return joined([...(rest.length === 0 ? [] : pass(rest)), ...release(undefined)]);
    },
  };
}

function isUsageAlone(chunk: CompletionChunk): boolean {
  return chunk.usage === "object" && !chunk.hasChoices;
}

interface InjectedUsageDetector {
  /** False for most events, which then need not be parsed. */
  mayEdit(event: Uint8Array): boolean;
  inspect(event: Uint8Array, chunk: CompletionChunk): Outgoing;
  /** Another chunk with usage follows: the usage in doubt was requested. */
  confirm(outgoing: Outgoing): void;
}

/** Learns from a stream's chunks which usage the backend would not have sent unasked. */
function createInjectedUsageDetector({ includeUsage, continuousUsage }: UsageAdded): InjectedUsageDetector {
  /** How this stream shows that usage is not set; undefined until a chunk without usage has come. */
  let unset: "null" | "omitted" | undefined;
  /** A chunk in the middle of a choice had usage. */
  let isContinuous = false;

  function inspectNull({ event, chunk, edits }: Outgoing): void {
    const stays = !includeUsage || chunk.nullIsUsual || unset === "null";
    unset ??= stays ? "null" : "omitted";
    if (!stays) edits.push(cutMember(event, chunk));
  }

  function removeUsage({ event, chunk, edits }: Outgoing): void {
    isContinuous = true;
    const wasNull = unset === "null" || chunk.nullWasReplaced;
    edits.push(wasNull ? { ...chunk.usageValue, text: "null" } : cutMember(event, chunk));
  }

  return {
    mayEdit: (event) =>
      hasMember(event, usageName) ||
      (includeUsage && hasMember(event, finishReasonName, quote)) ||
      (continuousUsage && unset === undefined && hasMember(event, choicesName, openBracket)),
    inspect(event, chunk) {
      const outgoing: Outgoing = { event, chunk, edits: [], usageInDoubt: false };
      if (chunk.usage === "absent") unset ??= "omitted";
      else if (chunk.usage === "null") inspectNull(outgoing);
      else if (continuousUsage && (isContinuous || !chunk.isFinal)) removeUsage(outgoing);
      else outgoing.usageInDoubt = continuousUsage;
      return outgoing;
    },
    confirm(outgoing) {
      if (outgoing.usageInDoubt) removeUsage(outgoing);
    },
  };
}

function movedMembers(chunk: CompletionChunk, last: CompletionChunk): FrameEdit {
  const moved = lastChunkMembers.map((name) => {
    const json = chunk.findMember(name) === undefined ? last.findMember(name) : undefined;
    return json === undefined ? "" : `,"${name}":${json}`;
  });
  return { start: chunk.tail, end: chunk.tail, text: moved.join("") };
}

/** The usage with its name and one comma. */
function cutMember(event: Uint8Array, { usageValue }: CompletionChunk): FrameEdit {
  const nameEnd = event.lastIndexOf(quote, usageValue.start - 1);
  const nameStart = event.lastIndexOf(quote, nameEnd - 1);
  let before = nameStart - 1;
  while (isWhiteSpace(event[before])) before--;
  if (event[before] === comma) return { start: before, end: usageValue.end, text: "" };
  let after = usageValue.end;
  while (isWhiteSpace(event[after])) after++;
  return { start: nameStart, end: event[after] === comma ? after + 1 : usageValue.end, text: "" };
}

function edited({ event, edits }: Outgoing): Uint8Array {
  if (edits.length === 0) return event;
  const pieces: Uint8Array[] = [];
  let from = 0;
  for (const { start, end, text } of edits.toSorted((a, b) => a.start - b.start)) {
    pieces.push(event.subarray(from, start), Buffer.from(text, "latin1"));
    from = end;
  }
  return Buffer.concat([...pieces, event.subarray(from)]);
}

function joined(events: readonly Uint8Array[]): Uint8Array {
  const [first = nothing] = events;
  return events.length > 1 ? Buffer.concat(events) : first;
}
