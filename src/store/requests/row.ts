import type { RequestRow } from "./contract.ts";
import { expectedCachedTokens } from "../../domain/backends.ts";
import { type ClientRule, clientRules } from "../../domain/models.ts";
import { columnFields, type RequestColumnValues } from "../../domain/request-fields.ts";
import { priorities, type Priority } from "../../domain/limits.ts";
import { type RequestChange, type RequestRecord, type WaitedFor, waits } from "../../domain/requests.ts";
import { type CountedUsage, listCounters, type Usage, usageFields } from "../../domain/usage.ts";

/** The columns of the request log that a request fills. */
export const requestColumns = columnFields.map(({ column }) => column);

const keyIdAt = requestColumns.indexOf("keyId");
const tokensAt = requestColumns.indexOf(usageFields[0]);

/** Clients choose these texts; longer ones are cut. */
export const maxModelLength = 200;
const maxPathLength = 300;
const maxClientLength = 80;

/** PostgreSQL stores neither null characters nor halves of surrogate pairs. */
export function cleanText(text: string, maxLength: number): string {
  const short = text.length > maxLength ? text.slice(0, maxLength) : text;
  // Nearly all are clean, and to look is cheaper than to replace.
  return short.isWellFormed() && !short.includes("\0") ? short : short.toWellFormed().replaceAll("\0", "\ufffd");
}

const textOrNull = (text: string | undefined, maxLength: number): string | null =>
  text === undefined ? null : cleanText(text, maxLength);

const microsecondsOrNull = (ms: number | undefined): number | null => (ms === undefined ? null : Math.round(ms * 1000));

const streamedBit = 1;
const changeBits: Readonly<Record<RequestChange, number>> = {
  model: 2,
  max_tokens: 4,
  system_prompt_effort: 8,
  system_prompt_language: 16,
  thinking: 32,
  stream_usage: 64,
  system_turns_to_user: 256,
  drop_billing_line: 512,
  developer_to_system: 1024,
  function_tools_only: 2048,
  full_context_code: 8192,
};
const uncountedBit = 128;
/** Its cached input is beside its input, and not a part of it. Of rows from before, the path and the numbers tell. */
export const cacheApartBit = 4096;
const waitBits: Readonly<Record<WaitedFor, number>> = { limits: 16_384, backend: 32_768, prefill: 65_536 };
const priorityBits: Readonly<Record<Priority, number>> = { high: 131_072, normal: 0, low: 262_144 };

function flagsOf(
  { streamed, isUncounted, changes, waitedFor, priority = "normal" }: RequestRecord,
  usage: CountedUsage | undefined,
): number {
  let flags = priorityBits[priority] | (streamed ? streamedBit : 0);
  if (isUncounted === true) flags |= uncountedBit;
  if (usage?.cachedBesideInputTokens !== undefined) flags |= cacheApartBit;
  if (waitedFor !== undefined) flags |= waitBits[waitedFor];
  if (changes !== undefined) for (const kind of changes.kinds) flags |= changeBits[kind];
  return flags;
}

export const isStreamed = (flags: number): boolean => (flags & streamedBit) !== 0;
export const isUncounted = (flags: number): boolean => (flags & uncountedBit) !== 0;
export const waitedForOf = (flags: number): WaitedFor | null =>
  waits.find((what) => (flags & waitBits[what]) !== 0) ?? null;
export const priorityOf = (flags: number): Priority | null =>
  priorities.find((one) => (flags & priorityBits[one]) !== 0) ?? null;
export const changesOf = (flags: number): RequestChange[] =>
  Object.entries(changeBits).flatMap(([kind, bit]) => ((flags & bit) === 0 ? [] : [kind as RequestChange]));

/** The bits of the rules that mended a body. */
export const clientRuleBits = clientRules.reduce((bits, rule) => bits | changeBits[rule], 0);
export const clientRulesOf = (flags: number): ClientRule[] =>
  clientRules.filter((rule) => (flags & changeBits[rule]) !== 0);

/** @param usage the tokens that were counted; undefined if the request does not count */
export function requestRowOf(
  request: RequestRecord,
  endedAt: number,
  usage: CountedUsage | undefined,
): RequestColumnValues {
  const { estimatedTokens = 0, expectation } = request;
  const maxTokens = request.changes?.maxTokens;
  return [
    endedAt,
    request.requestId,
    request.keyId ?? null,
    request.clientAddress,
    textOrNull(request.clientProgram, maxClientLength),
    request.requestClass ?? null,
    cleanText(request.method, maxClientLength),
    cleanText(request.path, maxPathLength),
    textOrNull(request.modelAsked, maxModelLength),
    textOrNull(request.modelSent, maxModelLength),
    request.backend ?? null,
    request.reason ?? null,
    request.status,
    request.outcome,
    request.code ?? null,
    textOrNull(request.cause, maxClientLength),
    flagsOf(request, usage),
    ...listCounters((field) => usage?.[field] ?? null),
    estimatedTokens === 0 ? null : estimatedTokens,
    (expectation && expectedCachedTokens(expectation, usage)) ?? null,
    request.conversation ?? null,
    request.cacheLoss ?? null,
    request.sends ?? null,
    microsecondsOrNull(request.queueMs),
    microsecondsOrNull(request.upstreamMs),
    microsecondsOrNull(request.firstByteMs),
    Math.round(request.durationMs * 1000),
    request.receivedBytes ?? null,
    maxTokens?.from ?? null,
    maxTokens?.to ?? null,
    // Apart from the successes: of another outcome, or an error of the backend.
    request.outcome !== "completed" || request.status >= 400 ? 1 : 0,
    textOrNull(request.message, maxPathLength),
    request.teamId ?? null,
    request.userId ?? null,
    request.traceId ?? null,
  ];
}

export const keyIdOf = ({ values }: RequestRow): string | number | null => values[keyIdAt] ?? null;

/** Puts the counted tokens into a row that was made without them. */
export function withTokens(values: RequestRow["values"], usage: Usage): RequestRow["values"] {
  return values.toSpliced(tokensAt, usageFields.length, ...listCounters((field) => usage[field] ?? null));
}
