import { hasMember, indexOfBytes, isLiteral, latin1, utf8 } from "../json/bytes.ts";
import { JsonEditor } from "../json/edit.ts";
import { createSlot } from "../json/slots.ts";
import type { UsageAdded } from "../rewrite/requested-stream.ts";
import { isLineEnd, maxHeldEventBytes, findDataLine } from "./events.ts";
import { parseJson } from "../../domain/json.ts";
import { readJson } from "../json/read.ts";
import { isEmpty, isEmptyChoice, isObject } from "./usage.ts";

const quote = 0x22;
/** Begins a comment. */
const colon = 0x3a;
const usageName = Buffer.from('usage"');
const timingsName = Buffer.from('timings"');
const choicesName = Buffer.from('choices"');
const finishReasonName = Buffer.from('finish_reason"');

/**
 * Removes from an event stream what the backend only sent because the proxy requested it, so that it is byte for byte what
 * it would have been without the proxy's `stream_options`. That depends on the server, and is read off the stream itself:
 *
 * - The chunk with only usage (`#passUsage`) is dropped with all that it holds, whatever its names, but for an error.
 *   The members that llama.cpp and vLLM move from the chunk before into that chunk (`lastChunkMembers`) are moved back;
 *   so the chunk that ends a choice waits for the next event.
 * - `"usage":null` in other chunks stays if the server writes out what is not set, and is removed if it was requested
 *   (see `readChoices`).
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
export class StreamUsageFilter {
  /** See `UsageAdded`. */
  readonly timedChoices: number | undefined;
  readonly #added: UsageAdded;
  readonly #includeUsage: boolean;
  /** The choices that have begun and not ended, as far as chunks were read. */
  readonly #running = new Set<string>();
  #hasEnded = false;
  /** The chunk that ended a choice, until the next event decides on its edits. */
  #held: CompletionChunk | undefined;
  /** Every choice has ended and nothing has followed, so the next event may be the usage that was requested. */
  #expectsUsage = false;
  /** How this stream shows that usage is not set; undefined until a chunk without usage has come. */
  #unset: "null" | "omitted" | undefined;
  /** A chunk in the middle of a choice had usage that was requested. */
  #isContinuous = false;
  /** The last chunk whose usage was removed, for a client that asked for usage at the end and has got none since. */
  #owed: CompletionChunk | undefined;
  /** The backend sends usage on its own account: nothing is to be removed. */
  #isUnasked = false;

  /** @param keepsUsage the backend is known to send the chunk with only usage unasked */
  constructor(added: UsageAdded, keepsUsage = false) {
    this.#added = added;
    this.timedChoices = added.timedChoices;
    this.#includeUsage = added.includeUsage && !keepsUsage;
  }

  /** @param event a whole one @returns what the client gets now; nothing if it waits for the next one */
  event(event: Uint8Array): Uint8Array[] {
    if (!this.#mayMatter(event, false)) return this.#passOther(event);
    // A chunk that waits is in memory of its own: a view would keep all that arrived with it.
    const own = event.length > maxHeldEventBytes ? event : new Uint8Array(event);
    const chunk = readCompletionChunk(own);
    return chunk === undefined ? this.#passOther(own) : this.#passChunk(chunk);
  }

  /** Whether these whole events, which have no usage but null, would all pass and change nothing. */
  passes(events: Uint8Array): boolean {
    const isSettled = this.#held === undefined && this.#owed === undefined && !this.#expectsUsage;
    return isSettled && !this.#mayMatter(events, true);
  }

  /** What is to come is no whole event. @returns what waits */
  release(): Uint8Array[] {
    this.#expectsUsage = false;
    return this.#release(undefined);
  }

  /** @param rest of the stream, which no empty line ends. @returns what waits and it, unless it begins an added chunk */
  end(rest: Uint8Array): Uint8Array[] {
    const isTorn = rest.length === 0 || (this.#expectsUsage && isTornChunk(rest));
    const isLast = rest.length === 0 && this.#hasEnded;
    return [...(isTorn ? [] : this.event(rest)), ...this.#release(undefined, isLast), ...this.#settle(isLast)];
  }

  /** False for most events, which then need not be parsed. @param isContent it has no usage but null, which may stay */
  #mayMatter(event: Uint8Array, isContent: boolean): boolean {
    if (this.timedChoices !== undefined && hasMember(event, timingsName)) return true;
    if (this.#isUnasked) return false;
    if (!(isContent && this.#unset === "null") && hasMember(event, usageName)) return true;
    if (hasMember(event, finishReasonName, quote)) return true;
    const isEachRead = this.#hasEnded || (this.#added.continuousUsage && this.#unset === undefined);
    return isEachRead && hasMember(event, choicesName);
  }

  #passOther(event: Uint8Array): Uint8Array[] {
    this.#expectsUsage &&= isVoid(event);
    if (this.#held === undefined && this.#owed === undefined) return [event];
    const isLast = isDone(event);
    const before = this.#release(undefined, isLast);
    const mayEnd = isLast || !(isVoid(event) || readCompletionChunk(event));
    return [...before, ...(mayEnd ? this.#settle(isLast) : []), event];
  }

  #passChunk(chunk: CompletionChunk): Uint8Array[] {
    const { event, json, timings, list, isFinal, ended, continued } = chunk;
    // By LiteLLM and OpenRouter, beside an empty choice.
    const isAfterEnd = this.#hasEnded && this.#running.size === 0 && !isFinal;
    const isAlone = !chunk.hasChoices || (isAfterEnd && list.every(isEmptyChoice));
    if (chunk.hasUsage && isAlone) return this.#passUsage(chunk);
    for (const index of continued) this.#running.add(index);
    for (const index of ended) this.#running.delete(index);
    this.#hasEnded ||= isFinal;
    this.#expectsUsage = this.#includeUsage && this.#hasEnded && this.#running.size === 0;
    const before = this.#release(chunk);
    this.#inspect(chunk);
    if (this.timedChoices !== undefined && timings.kind !== "absent" && !isFinal) {
      chunk.editor.removeMembers(json, [timings]);
    }
    const mayWait = isFinal && event.length <= maxHeldEventBytes;
    if (!mayWait || !(this.#includeUsage || chunk.usageInDoubt || chunk.mayBeAsked)) return [...before, edited(chunk)];
    this.#held = chunk;
    return before;
  }

  /** A chunk that is sent only for its usage. */
  #passUsage(chunk: CompletionChunk): Uint8Array[] {
    const { json, error } = chunk;
    this.#expectsUsage = false;
    const held = this.#held;
    // No client may miss an error.
    const hasError = error.kind !== "absent" && !isEmpty(parseJson(utf8(json, error.start, error.end)));
    if (!this.#includeUsage || hasError) {
      const before = this.#release(chunk);
      if (!this.#includeUsage) this.#owed = undefined;
      else chunk.editor.removeMembers(json, [chunk.usage]);
      return [...before, edited(chunk)];
    }
    for (const name of lastChunkMembers) {
      const { kind, start, end } = chunk[name];
      if (kind !== "absent" && held?.[name].kind === "absent")
        held.editor.addMember(held.root, name, utf8(json, start, end));
    }
    return this.#release(chunk);
  }

  /** @param next the chunk after the held one; undefined if none is next. @param isLast but `[DONE]` or the end */
  #release(next: CompletionChunk | undefined, isLast = false): Uint8Array[] {
    const chunk = this.#held;
    if (chunk === undefined) return [];
    this.#held = undefined;
    const { mayBeAsked, usageInDoubt } = chunk;
    // Another chunk with usage follows: the usage in doubt was requested.
    const isAsked = next?.usage.kind === "object" || (mayBeAsked && !isLast);
    if (isAsked && (usageInDoubt || mayBeAsked)) this.#removeUsage(chunk);
    else if (mayBeAsked) this.#owed = undefined;
    return [edited(chunk)];
  }

  /** @param isDue the stream ends. @returns a chunk with only the usage that is owed; afterwards none is */
  #settle(isDue: boolean): Uint8Array[] {
    const due = isDue ? this.#owed : undefined;
    this.#owed = undefined;
    if (due === undefined) return [];
    const editor = new JsonEditor();
    editor.replace(due.choices, "[]");
    return [edited(due, editor)];
  }

  /** Learns from a chunk which usage the backend would not have sent unasked. */
  #inspect(chunk: CompletionChunk): void {
    if (chunk.usage.kind === "object") return this.#inspectUsage(chunk);
    const stays = !this.#added.includeUsage || chunk.nullIsUsual || this.#unset === "null";
    this.#unset ??= chunk.hasNull && stays ? "null" : "omitted";
    if (chunk.hasNull && !stays) chunk.editor.removeMembers(chunk.json, [chunk.usage]);
  }

  #inspectUsage(chunk: CompletionChunk): void {
    const { event, json, usage, isFinal } = chunk;
    const { includeUsage, continuousUsage } = this.#added;
    if (continuousUsage && this.#isContinuous) {
      // The client asked for usage at the end, and this is all that there is if `[DONE]` follows.
      chunk.mayBeAsked = !includeUsage && isFinal && event.length <= maxHeldEventBytes;
      return chunk.mayBeAsked ? undefined : this.#removeUsage(chunk);
    }
    const members = parseObject(json.subarray(usage.start, usage.end)) ?? {};
    if (isZero(members)) return undefined;
    if (isFinal) chunk.usageInDoubt = continuousUsage && this.#unset === undefined;
    else if (continuousUsage && Object.keys(members).every((name) => runningNames.has(name))) this.#removeUsage(chunk);
    else this.#isUnasked = true;
    return undefined;
  }

  #removeUsage(chunk: CompletionChunk): void {
    this.#isContinuous = true;
    if (!this.#added.includeUsage) this.#owed = chunk;
    if (this.#unset === "null" || chunk.nullWasReplaced) chunk.editor.replace(chunk.usage, "null");
    else chunk.editor.removeMembers(chunk.json, [chunk.usage]);
  }
}

/** What a passage asks of whatever changes events on their way. */
export type EventFilter = Pick<StreamUsageFilter, keyof StreamUsageFilter>;

const doneMark = Buffer.from("[DONE]");
const isDone = (event: Uint8Array): boolean => event.length <= 64 && indexOfBytes(event, doneMark, 0) >= 0;

/** A comment or an empty line. */
const isVoid = (event: Uint8Array): boolean => event[0] === colon || event.every(isLineEnd);

function edited({ event, line, json, editor }: CompletionChunk, other = editor): Uint8Array {
  const pieces = other.apply(json);
  return pieces === undefined
    ? event
    : Buffer.concat([event.subarray(0, line.start), ...pieces, event.subarray(line.end)]);
}

const countNames = ["prompt_tokens", "completion_tokens", "total_tokens"];
/** All that the running usage of vLLM and SGLang has. */
const runningNames = new Set([...countNames, "prompt_tokens_details", "completion_tokens_details", "reasoning_tokens"]);

/** LiteLLM writes such usage into every chunk of a completion. No running count is zero: it has the prompt's tokens. */
function isZero(usage: Record<string, unknown>): boolean {
  const counts = countNames.map((name) => usage[name]);
  return counts.some((count) => count === 0) && counts.every((count) => typeof count !== "number" || count === 0);
}

/** What llama.cpp (`timings`) and vLLM (the fingerprint) put into the last chunk of a stream. */
const lastChunkMembers = ["system_fingerprint", "timings", "__tool_call_incomplete"] as const;

type CompletionChunk = NonNullable<ReturnType<typeof readCompletionChunk>>;

/**
 * What the filter needs of one event of a streamed completion, by positions in its JSON text. Undefined for any other event:
 * comments, errors, `[DONE]`, and data in several lines, which no backend sends.
 */
function readCompletionChunk(event: Uint8Array) {
  const line = findDataLine(event);
  if (line === undefined) return undefined;
  const json = event.subarray(line.start, line.end);
  const members = {
    usage: createSlot(),
    choices: createSlot(),
    error: createSlot(),
    system_fingerprint: createSlot(),
    timings: createSlot(),
    __tool_call_incomplete: createSlot(),
  };
  const { usage, choices } = members;
  const root = createSlot({ members });
  if (!readJson(json, root) || root.kind !== "object" || choices.kind !== "array") return undefined;
  const list = parseJson(utf8(json, choices.start, choices.end));
  if (!Array.isArray(list)) return undefined;
  const hasNull = isLiteral(json, usage, "null");
  return {
    event,
    /** Where the JSON text stands in it. */
    line,
    json,
    root,
    ...members,
    hasNull,
    /** Usage of any kind but null. */
    hasUsage: usage.kind !== "absent" && !hasNull,
    list: list as unknown[],
    ...readChoices(list),
    editor: new JsonEditor(),
    /** A server may send usage in the last chunk of a choice unasked; the next chunk decides. */
    usageInDoubt: false,
    /** It has running usage, and no other may follow. */
    mayBeAsked: false,
  };
}

function parseObject(bytes: Uint8Array): Record<string, unknown> | undefined {
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

const chunkStart = "data: {";

/** Whether a stream's last bytes, which no empty line ends, are the beginning of a chunk's line that is not an error. */
function isTornChunk(rest: Uint8Array): boolean {
  if (rest.some(isLineEnd)) return false;
  const text = latin1(rest);
  const isStart = chunkStart.startsWith(text) || text.startsWith(chunkStart) || text.startsWith("data:{");
  return isStart && !text.includes('"error"') && parseObject(rest.subarray("data:".length)) === undefined;
}
