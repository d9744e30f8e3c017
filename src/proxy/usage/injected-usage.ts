import { hasMember, isWhiteSpace } from "../json/bytes.ts";
import type { UsageAdded } from "../rewrite/stream-options.ts";
import { type CompletionChunk, type MemberSpan, parseObject } from "./completion-chunk.ts";

/** An event that is to be sent, and its edits. */
export interface Outgoing {
  event: Uint8Array;
  chunk: CompletionChunk;
  edits: FrameEdit[];
  /** A server may send usage in the last chunk of a choice unasked; the next chunk decides. */
  usageInDoubt: boolean;
}

export interface FrameEdit extends MemberSpan {
  text: string;
}

export interface InjectedUsageDetector {
  /** False for most events, which then need not be parsed. */
  mayEdit(event: Uint8Array): boolean;
  inspect(event: Uint8Array, chunk: CompletionChunk): Outgoing;
  /** Another chunk with usage follows: the usage in doubt was requested. */
  confirm(outgoing: Outgoing): void;
  /** The backend sends usage on its own account: nothing is to be removed. */
  isUnasked(): boolean;
}

const usageName = Buffer.from('usage"');
const finishReasonName = Buffer.from('finish_reason"');
const choicesName = Buffer.from('choices"');
const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;

/** Learns from a stream's chunks which usage the backend would not have sent unasked. */
export function createInjectedUsageDetector({ includeUsage, continuousUsage }: UsageAdded): InjectedUsageDetector {
  /** How this stream shows that usage is not set; undefined until a chunk without usage has come. */
  let unset: "null" | "omitted" | undefined;
  /** A chunk in the middle of a choice had usage that was requested. */
  let isContinuous = false;
  let isUnasked = false;

  function inspectNull({ event, chunk, edits }: Outgoing): void {
    const stays = !includeUsage || chunk.nullIsUsual || unset === "null";
    unset ??= stays ? "null" : "omitted";
    if (!stays) edits.push(cutUsage(event, chunk));
  }

  function inspectUsage(outgoing: Outgoing): void {
    const { event, chunk } = outgoing;
    if (continuousUsage && isContinuous) return removeUsage(outgoing);
    const usage = parseObject(event.subarray(chunk.usageValue.start, chunk.usageValue.end)) ?? {};
    if (isZero(usage)) return undefined;
    if (chunk.isFinal) outgoing.usageInDoubt = continuousUsage && unset === undefined;
    else if (continuousUsage && isRunningUsage(usage)) removeUsage(outgoing);
    else isUnasked = true;
    return undefined;
  }

  function removeUsage({ event, chunk, edits }: Outgoing): void {
    isContinuous = true;
    const wasNull = unset === "null" || chunk.nullWasReplaced;
    edits.push(wasNull ? { ...chunk.usageValue, text: "null" } : cutUsage(event, chunk));
  }

  return {
    mayEdit: (event) =>
      hasMember(event, usageName) ||
      hasMember(event, finishReasonName, quote) ||
      (continuousUsage && unset === undefined && hasMember(event, choicesName, openBracket)),
    inspect(event, chunk) {
      const outgoing: Outgoing = { event, chunk, edits: [], usageInDoubt: false };
      if (chunk.usage === "absent") unset ??= "omitted";
      else if (chunk.usage === "null") inspectNull(outgoing);
      else inspectUsage(outgoing);
      return outgoing;
    },
    confirm(outgoing) {
      if (outgoing.usageInDoubt) removeUsage(outgoing);
    },
    isUnasked: () => isUnasked,
  };
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

/** The usage with its name and one comma. */
export function cutUsage(event: Uint8Array, { usageValue }: CompletionChunk): FrameEdit {
  const nameEnd = event.lastIndexOf(quote, usageValue.start - 1);
  const nameStart = event.lastIndexOf(quote, nameEnd - 1);
  let before = nameStart - 1;
  while (isWhiteSpace(event[before])) before--;
  if (event[before] === comma) return { start: before, end: usageValue.end, text: "" };
  let after = usageValue.end;
  while (isWhiteSpace(event[after])) after++;
  return { start: nameStart, end: event[after] === comma ? after + 1 : usageValue.end, text: "" };
}
