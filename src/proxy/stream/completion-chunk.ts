import { parseJson } from "../../domain/json.ts";
import { isLiteral, latin1, utf8 } from "../json/bytes.ts";
import { readJson } from "../json/read.ts";
import { createSlot, type JsonSlot, type Span } from "../json/slots.ts";
import { isEmpty, isEmptyChoice, isObject } from "./event-usage.ts";
import { findDataLine, isLineEnd } from "./events.ts";

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
