import { hasMember, indexOfBytes, isWhiteSpace, isLiteral, latin1, utf8 } from "../json/bytes.ts";
import { type Span, createSlot, type JsonSlot } from "../json/slots.ts";
import type { UsageAdded } from "../rewrite/requested-stream.ts";
import { isLineEnd, maxHeldEventBytes, findDataLine } from "./events.ts";
import { parseJson } from "../../domain/json.ts";
import { readJson } from "../json/read.ts";
import { isEmpty, isEmptyChoice, isObject } from "./event-usage.ts";

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

export type CompletionChunk = NonNullable<ReturnType<typeof readChunk>>;

/** What llama.cpp (`timings`) and vLLM (the fingerprint) put into the last chunk of a stream. */
export const lastChunkMembers = ["system_fingerprint", "timings", "__tool_call_incomplete"] as const;

/** Undefined for any other event: comments, errors, `[DONE]`, and data in several lines, which no backend sends. */
export function readCompletionChunk(event: Uint8Array): CompletionChunk | undefined {
  const line = findDataLine(event);
  return line && readChunk(event.subarray(line.start, line.end), line.start);
}

/**
 * What the filter needs of one event of a streamed completion. Positions are bytes of the event.
 * @param offset the position of the JSON text in it
 */
function readChunk(bytes: Uint8Array, offset: number) {
  const usage = createSlot();
  const choices = createSlot();
  const members = Object.fromEntries(lastChunkMembers.map((name) => [name, createSlot()]));
  const root = createSlot({ members: { usage, choices, ...members } });
  if (!readJson(bytes, root) || root.kind !== "object" || choices.kind !== "array") return undefined;
  const list = parseObject(bytes.subarray(choices.start, choices.end));
  if (!Array.isArray(list)) return undefined;
  const isNull = isLiteral(bytes, usage, "null");
  const spanOf = ({ start, end }: JsonSlot): Span => ({ start: start + offset, end: end + offset });
  return {
    ...readChoices(list),
    usage: usage.kind === "object" ? ("object" as const) : isNull ? ("null" as const) : ("absent" as const),
    /** Usage of any kind but null. */
    hasUsage: usage.kind !== "absent" && !isNull,
    usageValue: spanOf(usage),
    choicesValue: spanOf(choices),
    timingsValue: members.timings && members.timings.kind !== "absent" ? spanOf(members.timings) : undefined,
    /** After the last member. */
    tail: root.tail + offset,
    /** The whole JSON text, parsed; undefined if the runtime does not take it. */
    parse: () => parseObject(bytes),
    /** The JSON of one of `lastChunkMembers`. */
    findMember(name: string): string | undefined {
      const member = members[name];
      return member === undefined || member.kind === "absent" ? undefined : latin1(bytes, member.start, member.end);
    },
  };
}

export function parseObject(bytes: Uint8Array): Record<string, unknown> | undefined {
  const value = parseJson(utf8(bytes));
  return isObject(value) ? value : undefined;
}

/** What the API names. Some servers write another text into each chunk, or an empty one. */
const ends: ReadonlySet<unknown> = new Set(["stop", "length", "tool_calls", "content_filter", "function_call"]);

/**
 * Servers and versions differ in whether they write null for what is not set, so it is read off the choices. SGLang, TGI
 * and mistral.rs write out every member of a delta; SGLang also `matched_stop`; vLLM's legacy completions, if they have a
 * null at all, everything. OpenAI and older chat of vLLM do none of this: their null was requested.
 */
function readChoices(list: readonly unknown[]) {
  const [ended, continued]: [string[], string[]] = [[], []];
  let [nullIsUsual, nullWasReplaced] = [false, false];
  for (const choice of list) {
    if (!isObject(choice) || Array.isArray(choice)) continue;
    const { index, delta, finish_reason: reason, text, matched_stop: matchedStop } = choice;
    (ends.has(reason) ? ended : continued).push(String(index));
    const { role, tool_calls: calls, function_call: call } = isObject(delta) ? delta : {};
    const hasStop = matchedStop !== undefined;
    nullIsUsual ||= role === null || calls === null || call === null || hasStop;
    nullIsUsual ||= text !== undefined && choice.stop_reason !== undefined;
    nullWasReplaced ||= role === null || (text !== undefined && hasStop);
  }
  const hasChoices = ended.length + continued.length > 0;
  return {
    hasChoices,
    /** A choice ends in this chunk. */
    isFinal: ended.length > 0,
    /** The `index` of each choice that ends in this chunk. */
    ended,
    /** The same for the others. */
    continued,
    /** This server writes `"usage":null` into such a chunk unasked. */
    nullIsUsual,
    /** The same for a chunk that has usage because it was requested. */
    nullWasReplaced,
  };
}

/** Which choices of a stream have ended, as far as its chunks were read. */
export class StreamProgress {
  readonly #running = new Set<string>();
  hasEnded = false;

  follow({ ended, continued }: CompletionChunk): void {
    for (const index of continued) this.#running.add(index);
    for (const index of ended) this.#running.delete(index);
    this.hasEnded ||= ended.length > 0;
  }

  /** Every choice that was seen has ended. */
  get haveAllEnded(): boolean {
    return this.hasEnded && this.#running.size === 0;
  }
}

/**
 * Whether a chunk is sent only for its usage: without choices or, by LiteLLM and OpenRouter, with an empty choice after
 * every choice has ended.
 */
export function isUsageAlone(chunk: CompletionChunk, progress: StreamProgress): boolean {
  if (!chunk.hasUsage) return false;
  return !chunk.hasChoices || (progress.haveAllEnded && !chunk.isFinal && hasEmptyChoices(chunk));
}

function hasEmptyChoices(chunk: CompletionChunk): boolean {
  const choices = chunk.parse()?.choices;
  return Array.isArray(choices) && choices.every(isEmptyChoice);
}

/** Whether a chunk tells of an error, which no client may miss. */
export const hasError = (chunk: CompletionChunk): boolean => !isEmpty(chunk.parse()?.error ?? null);

const chunkStart = "data: {";

/** Whether a stream's last bytes, which no empty line ends, are the beginning of a chunk's line that is not an error. */
export function isTornChunk(rest: Uint8Array): boolean {
  if (rest.some(isLineEnd)) return false;
  const text = latin1(rest);
  const isStart = chunkStart.startsWith(text) || text.startsWith(chunkStart) || text.startsWith("data:{");
  return isStart && !text.includes('"error"') && parseObject(rest.subarray("data:".length)) === undefined;
}
