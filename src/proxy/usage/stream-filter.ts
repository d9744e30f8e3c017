import { lastChunkMembers, readCompletionChunk, type CompletionChunk, type MemberSpan } from "./completion-chunk.ts";
import { createEventSplitter } from "../sse/event-splitter.ts";
import { hasMember, isWhiteSpace } from "../json/bytes.ts";
import type { UsageAdded } from "../rewrite/stream-options.ts";

/** Takes out of an event stream what was only sent because the proxy asked. */
export interface StreamUsageFilter {
  /** @returns what the client gets of the bytes up to here; empty where they are still held */
  push(chunk: Uint8Array): Uint8Array;
  /** @returns what was still held */
  end(): Uint8Array;
}

/** An event on its way out, and the edits that are due. */
interface Outgoing {
  event: Uint8Array;
  chunk: CompletionChunk;
  edits: FrameEdit[];
  /** Usage in the last chunk of a choice may be the server's habit: what comes next tells. */
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
 * Makes a stream byte for byte what it would have been without the proxy's `stream_options`. What that is depends on the
 * server, and the stream itself tells:
 *
 * - The chunk with usage and no choices is dropped. What llama.cpp and vLLM then put into that chunk instead of into the
 *   one before (`lastChunkMembers`) goes back there; so the chunk that ends a choice waits for the event behind it.
 * - `"usage":null` elsewhere stays where the server writes out what is not set, and goes where it was asked for
 *   (see `CompletionChunk`).
 * - Usage beside choices goes, or turns back into null, once a chunk in the middle had some. In a last chunk alone it
 *   was not asked for: Mistral, DeepSeek and llama.cpp's legacy completions always send it there.
 *
 * Known not to come out the same: with several choices at a time, the fingerprint of vLLM in the chunks that end all but
 * the last; and the nulls that older vLLM wrote into legacy completions (under `continuous`) and chat (asked for usage).
 *
 * @returns undefined where nothing was added
 */
export function createStreamUsageFilter(added: UsageAdded): StreamUsageFilter | undefined {
  const { includeUsage, continuousUsage } = added;
  if (!includeUsage && !continuousUsage) return undefined;
  const splitter = createEventSplitter();
  const detector = createInjectedUsageDetector(added);
  /** The chunk that ended a choice. */
  let held: Outgoing | undefined;

  function pass(event: Uint8Array): Uint8Array[] {
    const chunk = detector.mayEdit(event) ? readCompletionChunk(event) : undefined;
    const before = release(chunk);
    if (chunk === undefined) return [...before, event];
    if (isUsageAlone(chunk)) return includeUsage ? before : [...before, event];
    const outgoing = detector.detector(event, chunk);
    const waits = chunk.isFinal && (includeUsage || outgoing.usageInDoubt);
    if (!waits) return [...before, edited(outgoing)];
    held = outgoing;
    return before;
  }

  /** @param next the chunk behind the held one, where one follows */
  function release(next: CompletionChunk | undefined): Uint8Array[] {
    if (held === undefined) return [];
    const outgoing = held;
    held = undefined;
    if (next?.usage === "object") detector.resolve(outgoing);
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
  /** Most events have nothing to take out: they are not parsed. */
  mayEdit(event: Uint8Array): boolean;
  detector(event: Uint8Array, chunk: CompletionChunk): Outgoing;
  /** Usage follows usage: what was in doubt is one of many. */
  resolve(outgoing: Outgoing): void;
}

/** Learns from a stream's chunks what they would hold had nobody asked. */
function createInjectedUsageDetector({ includeUsage, continuousUsage }: UsageAdded): InjectedUsageDetector {
  /** How this stream shows that usage is not set; undefined as long as every chunk had some. */
  let unset: "null" | "omitted" | undefined;
  let isContinuous = false;

  function judgeNull({ event, chunk, edits }: Outgoing): void {
    const stays = !includeUsage || chunk.nullIsUsual || unset === "null";
    unset ??= stays ? "null" : "omitted";
    if (!stays) edits.push(cutMember(event, chunk));
  }

  function takeUsage({ event, chunk, edits }: Outgoing): void {
    isContinuous = true;
    const wasNull = unset === "null" || chunk.nullWasReplaced;
    edits.push(wasNull ? { ...chunk.usageValue, text: "null" } : cutMember(event, chunk));
  }

  return {
    mayEdit: (event) =>
      hasMember(event, usageName) ||
      (includeUsage && hasMember(event, finishReasonName, quote)) ||
      (continuousUsage && unset === undefined && hasMember(event, choicesName, openBracket)),
    detector(event, chunk) {
      const outgoing: Outgoing = { event, chunk, edits: [], usageInDoubt: false };
      if (chunk.usage === "absent") unset ??= "omitted";
      else if (chunk.usage === "null") judgeNull(outgoing);
      else if (continuousUsage && (isContinuous || !chunk.isFinal)) takeUsage(outgoing);
      else outgoing.usageInDoubt = continuousUsage;
      return outgoing;
    },
    resolve(outgoing) {
      if (outgoing.usageInDoubt) takeUsage(outgoing);
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

/** The usage with its name and the comma that joins it to its neighbours. */
function cutMember(event: Uint8Array, { usageValue }: CompletionChunk): FrameEdit {
  const nameEnd = event.lastIndexOf(quote, usageValue.start - 1);
  const nameStart = event.lastIndexOf(quote, nameEnd - 1);
  let before = nameStart - 1;
  while (isWhiteSpace(event[before])) before--;
  if (event[before] === comma) return { start: before, end: usageValue.end, text: "" };
  let behind = usageValue.end;
  while (isWhiteSpace(event[behind])) behind++;
  return { start: nameStart, end: event[behind] === comma ? behind + 1 : usageValue.end, text: "" };
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
