import { hasMember, indexOfBytes, isWhiteSpace } from "../json/bytes.ts";
import type { Span } from "../json/slots.ts";
import type { UsageAdded } from "../rewrite/stream-options.ts";
import { isLineEnd, maxHeldEventBytes } from "./events.ts";
import {
  type CompletionChunk,
  hasError,
  isTornChunk,
  isUsageAlone,
  lastChunkMembers,
  parseObject,
  readCompletionChunk,
  StreamProgress,
} from "./completion-chunk.ts";

/** Begins a comment. */
const colon = 0x3a;
const choicesName = Buffer.from('choices"');

/**
 * Removes from an event stream what the backend only sent because the proxy requested it, so that it is byte for byte what
 * it would have been without the proxy's `stream_options`. That depends on the server, and is read off the stream itself:
 *
 * - The chunk with only usage (`isUsageAlone`) is dropped with all that it holds, whatever its names, but for an error.
 *   The members that llama.cpp and vLLM move from the chunk before into that chunk (`lastChunkMembers`) are moved back;
 *   so the chunk that ends a choice waits for the next event.
 * - `"usage":null` in other chunks stays if the server writes out what is not set, and is removed if it was requested
 *   (see `CompletionChunk`).
 * - Usage beside choices is removed, or turned back into null, once a chunk in the middle had some. Usage in a last chunk
 *   only was not requested: Mistral, DeepSeek and llama.cpp's legacy completions always send it there.
 * - A client that asked for usage at the end, of a server that has running usage and no such chunk, gets the last.
 * - A server that reports usage unasked keeps all of it. It is recognised by usage in the middle that was not
 *   requested, or that has other members than vLLM's and SGLang's, such as Perplexity's costs.
 *
 * Known differences: an event of more than `maxHeldEventBytes` passes with its usage if it arrives in parts, and waits for
 * no other event; with several choices at a time, vLLM's fingerprint in the chunks that end all but the last choice; and
 * the nulls that older vLLM wrote into legacy completions (under `continuous`) and chat (if usage was requested). It
 * cannot be told whether a chunk with only usage at the end (some routes of OpenRouter and Hugging Face, vLLM with
 * `--enable-force-include-usage`), running usage in the form of vLLM's, or null in chunks in the form of OpenAI's would
 * have come unasked: they are removed.
 */
class StreamUsageFilter {
  /** See `UsageAdded`. */
  readonly timedChoices: number | undefined;
  readonly #includeUsage: boolean;
  readonly #detector: InjectedUsageDetector;
  readonly #progress = new StreamProgress();
  /** The chunk that ended a choice, until the next event decides on its edits. */
  #held: Outgoing | undefined;
  /** Every choice has ended and nothing has followed, so the next event may be the usage that was requested. */
  #expectsUsage = false;

  constructor(added: UsageAdded, keepsUsage: boolean) {
    this.timedChoices = added.timedChoices;
    this.#includeUsage = added.includeUsage && !keepsUsage;
    this.#detector = new InjectedUsageDetector(added);
  }

  /** @param event a whole one @returns what the client gets now; nothing if it waits for the next one */
  event(event: Uint8Array): Uint8Array[] {
    if (!this.#mayMatter(event)) return this.#passOther(event);
    // A chunk that waits is in memory of its own: a view would keep all that arrived with it.
    const own = event.length > maxHeldEventBytes ? event : new Uint8Array(event);
    const chunk = readCompletionChunk(own);
    return chunk === undefined ? this.#passOther(own) : this.#passChunk(own, chunk);
  }

  /** Whether these whole events, which have no usage but null, would all pass and change nothing. */
  passes(events: Uint8Array): boolean {
    return this.#held === undefined && !this.#expectsUsage && !this.#detector.owes() && !this.#mayMatter(events, true);
  }

  /** What is to come is no whole event. @returns what waits */
  release(): Uint8Array[] {
    this.#expectsUsage = false;
    return this.#release(undefined);
  }

  /** @param rest of the stream, which no empty line ends. @returns what waits and it, unless it begins an added chunk */
  end(rest: Uint8Array): Uint8Array[] {
    const isTorn = rest.length === 0 || (this.#expectsUsage && isTornChunk(rest));
    const isLast = rest.length === 0 && this.#progress.hasEnded;
    return [...(isTorn ? [] : this.event(rest)), ...this.#release(undefined, isLast), ...this.#detector.settle(isLast)];
  }

  #passOther(event: Uint8Array): Uint8Array[] {
    this.#expectsUsage &&= isVoid(event);
    if (this.#held === undefined && !this.#detector.owes()) return [event];
    const isLast = isDone(event);
    const before = this.#release(undefined, isLast);
    const mayEnd = isLast || !(isVoid(event) || readCompletionChunk(event));
    return [...before, ...(mayEnd ? this.#detector.settle(isLast) : []), event];
  }

  #passChunk(event: Uint8Array, chunk: CompletionChunk): Uint8Array[] {
    if (isUsageAlone(chunk, this.#progress)) return this.#passUsage(event, chunk);
    this.#progress.follow(chunk);
    this.#expectsUsage = this.#includeUsage && this.#progress.haveAllEnded;
    const before = this.#release(chunk);
    const outgoing = this.#detector.inspect(event, chunk);
    if (this.timedChoices !== undefined && chunk.timingsValue !== undefined && !chunk.isFinal)
      outgoing.edits.push(cutMember(event, chunk.timingsValue));
    const mayWait = chunk.isFinal && event.length <= maxHeldEventBytes;
    if (!mayWait || !(this.#includeUsage || outgoing.usageInDoubt || outgoing.mayBeAsked))
      return [...before, edited(outgoing)];
    this.#held = outgoing;
    return before;
  }

  #passUsage(event: Uint8Array, chunk: CompletionChunk): Uint8Array[] {
    this.#expectsUsage = false;
    if (!this.#includeUsage) {
      const before = this.#release(chunk);
      this.#detector.settle(false);
      return [...before, event];
    }
    if (hasError(chunk)) return [...this.#release(chunk), edited({ event, edits: [cutUsage(event, chunk)] })];
    this.#held?.edits.push(movedMembers(this.#held.chunk, chunk));
    return this.#release(chunk);
  }

  #mayMatter(event: Uint8Array, isContent = false): boolean {
    if (this.timedChoices !== undefined && hasMember(event, timingsName)) return true;
    if (this.#detector.isUnasked) return false;
    return this.#detector.mayEdit(event, isContent) || (this.#progress.hasEnded && hasMember(event, choicesName));
  }

  /** @param next the chunk after the held one; undefined if none is next. @param isLast but `[DONE]` or the end */
  #release(next: CompletionChunk | undefined, isLast = false): Uint8Array[] {
    if (this.#held === undefined) return [];
    const outgoing = this.#held;
    this.#held = undefined;
    if (next?.usage === "object" || (outgoing.mayBeAsked && !isLast)) this.#detector.confirm(outgoing);
    else if (outgoing.mayBeAsked) this.#detector.settle(false);
    return [edited(outgoing)];
  }
}

/** What a passage asks of whatever changes events on their way. */
export type EventFilter = Pick<StreamUsageFilter, keyof StreamUsageFilter>;

/** @param keepsUsage the backend is known to send the chunk with only usage unasked. @returns undefined if nothing was added */
export function createStreamUsageFilter(added: UsageAdded, keepsUsage = false): StreamUsageFilter | undefined {
  return added.includeUsage || added.continuousUsage ? new StreamUsageFilter(added, keepsUsage) : undefined;
}

const doneMark = Buffer.from("[DONE]");
const isDone = (event: Uint8Array): boolean => event.length <= 64 && indexOfBytes(event, doneMark, 0) >= 0;

/** A comment or an empty line. */
const isVoid = (event: Uint8Array): boolean => event[0] === colon || event.every(isLineEnd);

function movedMembers(chunk: CompletionChunk, last: CompletionChunk): FrameEdit {
  const moved = lastChunkMembers.map((name) => {
    const json = chunk.findMember(name) === undefined ? last.findMember(name) : undefined;
    return json === undefined ? "" : `,"${name}":${json}`;
  });
  return { start: chunk.tail, end: chunk.tail, text: moved.join("") };
}

function edited({ event, edits }: Pick<Outgoing, "event" | "edits">): Uint8Array {
  if (edits.length === 0) return event;
  const pieces: Uint8Array[] = [];
  let from = 0;
  for (const { start, end, text } of edits.toSorted((a, b) => a.start - b.start)) {
    pieces.push(event.subarray(from, start), Buffer.from(text, "latin1"));
    from = end;
  }
  return Buffer.concat([...pieces, event.subarray(from)]);
}

/** An event that is to be sent, and its edits. */
interface Outgoing {
  event: Uint8Array;
  chunk: CompletionChunk;
  edits: FrameEdit[];
  /** A server may send usage in the last chunk of a choice unasked; the next chunk decides. */
  usageInDoubt: boolean;
  /** It has running usage, and no other may follow. */
  mayBeAsked: boolean;
}

interface FrameEdit extends Span {
  text: string;
}

const usageName = Buffer.from('usage"');
const timingsName = Buffer.from('timings"');
const finishReasonName = Buffer.from('finish_reason"');
const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;

/** Learns from a stream's chunks which usage the backend would not have sent unasked. */
class InjectedUsageDetector {
  readonly #added: UsageAdded;
  /** How this stream shows that usage is not set; undefined until a chunk without usage has come. */
  #unset: "null" | "omitted" | undefined;
  /** A chunk in the middle of a choice had usage that was requested. */
  #isContinuous = false;
  /** The last chunk whose usage was removed, for a client that asked for usage itself. */
  #owed: Pick<Outgoing, "event" | "chunk"> | undefined;
  /** The backend sends usage on its own account: nothing is to be removed. */
  isUnasked = false;

  constructor(added: UsageAdded) {
    this.#added = added;
  }

  /** False for most events, which then need not be parsed. @param isContent it has no usage but null, which may stay */
  mayEdit(event: Uint8Array, isContent: boolean): boolean {
    if (!(isContent && this.#unset === "null") && hasMember(event, usageName)) return true;
    if (hasMember(event, finishReasonName, quote)) return true;
    return this.#added.continuousUsage && this.#unset === undefined && hasMember(event, choicesName, openBracket);
  }

  inspect(event: Uint8Array, chunk: CompletionChunk): Outgoing {
    const outgoing: Outgoing = { event, chunk, edits: [], usageInDoubt: false, mayBeAsked: false };
    if (chunk.usage === "absent") this.#unset ??= "omitted";
    else if (chunk.usage === "null") this.#inspectNull(outgoing);
    else this.#inspectUsage(outgoing);
    return outgoing;
  }

  /** Another chunk with usage follows: the usage in doubt was requested. */
  confirm(outgoing: Outgoing): void {
    if (outgoing.usageInDoubt || outgoing.mayBeAsked) this.#removeUsage(outgoing);
  }

  /** The client asked for usage at the end, and has got none since some was removed. */
  owes(): boolean {
    return this.#owed !== undefined;
  }

  /** @param isDue the stream ends. @returns a chunk with only the usage that is owed; afterwards none is */
  settle(isDue: boolean): Uint8Array[] {
    const due = isDue ? this.#owed : undefined;
    this.#owed = undefined;
    return due === undefined ? [] : [edited({ ...due, edits: [{ ...due.chunk.choicesValue, text: "[]" }] })];
  }

  #inspectNull({ event, chunk, edits }: Outgoing): void {
    const stays = !this.#added.includeUsage || chunk.nullIsUsual || this.#unset === "null";
    this.#unset ??= stays ? "null" : "omitted";
    if (!stays) edits.push(cutUsage(event, chunk));
  }

  #inspectUsage(outgoing: Outgoing): void {
    const { event, chunk } = outgoing;
    const { includeUsage, continuousUsage } = this.#added;
    if (continuousUsage && this.#isContinuous) {
      // The client asked for usage at the end, and this is all that there is if `[DONE]` follows.
      outgoing.mayBeAsked = !includeUsage && chunk.isFinal && event.length <= maxHeldEventBytes;
      return outgoing.mayBeAsked ? undefined : this.#removeUsage(outgoing);
    }
    const usage = parseObject(event.subarray(chunk.usageValue.start, chunk.usageValue.end)) ?? {};
    if (isZero(usage)) return undefined;
    if (chunk.isFinal) outgoing.usageInDoubt = continuousUsage && this.#unset === undefined;
    else if (continuousUsage && isRunningUsage(usage)) this.#removeUsage(outgoing);
    else this.isUnasked = true;
    return undefined;
  }

  #removeUsage({ event, chunk, edits }: Outgoing): void {
    this.#isContinuous = true;
    if (!this.#added.includeUsage) this.#owed = { event, chunk };
    const wasNull = this.#unset === "null" || chunk.nullWasReplaced;
    edits.push(wasNull ? { ...chunk.usageValue, text: "null" } : cutUsage(event, chunk));
  }
}

const countNames = ["prompt_tokens", "completion_tokens", "total_tokens"];
/** All that vLLM and SGLang have. */
const runningNames = new Set([...countNames, "prompt_tokens_details", "completion_tokens_details", "reasoning_tokens"]);

function isRunningUsage(usage: Record<string, unknown>): boolean {
  return Object.keys(usage).every((name) => runningNames.has(name));
}

/** LiteLLM writes such usage into every chunk of a completion. No running count is zero: it has the prompt's tokens. */
function isZero(usage: Record<string, unknown>): boolean {
  const counts = countNames.map((name) => usage[name]);
  return counts.some((count) => count === 0) && counts.every((count) => typeof count !== "number" || count === 0);
}

const cutUsage = (event: Uint8Array, { usageValue }: CompletionChunk): FrameEdit => cutMember(event, usageValue);

/** The member with its name and one comma. */
function cutMember(event: Uint8Array, value: Span): FrameEdit {
  const nameEnd = event.lastIndexOf(quote, value.start - 1);
  const nameStart = event.lastIndexOf(quote, nameEnd - 1);
  let before = nameStart - 1;
  while (isWhiteSpace(event[before])) before--;
  if (event[before] === comma) return { start: before, end: value.end, text: "" };
  let after = value.end;
  while (isWhiteSpace(event[after])) after++;
  return { start: nameStart, end: event[after] === comma ? after + 1 : value.end, text: "" };
}
