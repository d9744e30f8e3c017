// Reads token usage out of parsed JSON that backends send, whatever members a server reports it in, and knows what each
// backend does about the usage of streams. Long texts are parsed in pieces (`json/push-parser.ts`).
//
// It keeps true: a count that is impossible is none; a long or hostile text takes no more memory than a short one, and
// one that is broken or ends early is read as far as possible. What holds no usage is mostly found out without parsing.
// It has no I/O, and does not decide what counts: `proxy/response/count.ts` does.

import { noUsage, pickUsage, type Usage, type UsageField, type UsagePart } from "../../domain/usage.ts";
import { parseJson } from "../../domain/json.ts";
import { hasMember, indexOfBytes, utf8 } from "../json/bytes.ts";
import { PushParser } from "../json/push-parser.ts";
import { braceOpen } from "../json/slots.ts";
import type { Endpoint } from "../rewrite/endpoint.ts";

/** A response or event has its `usage` at the top level, in a Messages `message` or in a Responses `response`. */
const usageHolders = ["message", "response"] as const;

/** Chat, completions and embeddings use prompt and completion; Messages and Responses use input and output. */
export const tokenCountNames = {
  inputTokens: ["prompt_tokens", "input_tokens"],
  outputTokens: ["completion_tokens", "output_tokens"],
} as const;

const totalName = "total_tokens";

/** Input that was written into a cache: of the Messages API, beside the input. It is part of no count, but of a charge. */
export const cacheWriteName = "cache_creation_input_tokens";

/** llama.cpp's, beside usage: a part of the input. */
export const cachedTimingName = "cache_n";

/** The names of a part of the counts: at the top level of `usage`, or as a member of its details. */
interface PartNames {
  names: readonly string[];
  holders: readonly string[];
  detail: string;
}

const partNames: Readonly<Record<UsagePart, PartNames>> = {
  cachedInputTokens: {
    // Of the Messages API, DeepSeek, and Moonshot.
    names: ["cache_read_input_tokens", "prompt_cache_hit_tokens", "cached_tokens"],
    holders: ["prompt_tokens_details", "input_tokens_details"],
    detail: "cached_tokens",
  },
  reasoningTokens: {
    names: [],
    holders: ["completion_tokens_details", "output_tokens_details"],
    detail: "reasoning_tokens",
  },
};

/** A larger count in one response is impossible: added up, such counts would overflow the totals. */
const maxCount = 1_000_000_000;

/**
 * Adds the counts of one parsed response to those seen before. A positive count replaces an earlier one; null, zero and
 * impossible values never do: servers send them before the real value and, on errors, after it.
 */
export function readUsage(value: unknown, seen: Usage): Usage {
  if (!isObject(value)) return seen;
  const places = [readReported(value, noUsage), readElsewhere(value, noUsage), readTotal(value)];
  const found = places.find(({ inputTokens, outputTokens }) => inputTokens + outputTokens > 0) ?? noUsage;
  return {
    inputTokens: found.inputTokens === 0 ? seen.inputTokens : found.inputTokens,
    outputTokens: found.outputTokens === 0 ? seen.outputTokens : found.outputTokens,
    cachedInputTokens: found.cachedInputTokens ?? seen.cachedInputTokens,
    reasoningTokens: found.reasoningTokens ?? seen.reasoningTokens,
  } satisfies Record<UsageField, unknown>;
}

/** At the places that nearly all servers use. */
function readReported(value: Record<string, unknown>, seen: Usage): Usage {
  let usage = readCounts(value.usage, seen);
  for (const holder of usageHolders) {
    const held = value[holder];
    if (isObject(held)) usage = readCounts(held.usage, usage);
  }
  const timings = usage === seen ? undefined : value["timings"];
  if (!isObject(timings)) return usage;
  return { ...usage, cachedInputTokens: usage.cachedInputTokens ?? findCount(timings, [cachedTimingName]) };
}

/** Moonshot reports the usage of a stream in its last choice, Groq under `x_groq`. */
function readElsewhere(value: Record<string, unknown>, seen: Usage): Usage {
  const usage = isObject(value.x_groq) ? readCounts(value.x_groq.usage, seen) : seen;
  const choice: unknown = Array.isArray(value.choices) ? value.choices.at(-1) : undefined;
  return isObject(choice) ? readCounts(choice.usage, usage) : usage;
}

/** Embeddings and reranking have no output, so some servers report only the total. */
function readTotal({ usage }: Record<string, unknown>): Usage {
  if (!isObject(usage)) return noUsage;
  const isAlone = Object.values(tokenCountNames).every((names) =>
    names.every((name) => typeof usage[name] !== "number"),
  );
  return isAlone ? { inputTokens: findCount(usage, [totalName]) ?? 0, outputTokens: 0 } : noUsage;
}

/** Usage while a stream is being read. */
export interface StreamUsage extends Usage, UsageShape {
  /** Counts only if no event has usage at a usual place. */
  elsewhere: Usage;
}

export const noStreamUsage: StreamUsage = { ...noUsage, outputIsOpening: false, isAlone: false, elsewhere: noUsage };

/** What the usage of a stream looks like so far. */
export interface UsageShape {
  /** The output is the placeholder that a Messages stream opens with. */
  outputIsOpening: boolean;
  /** It came in an event without choices, or with empty ones, as it does if it is asked for. */
  isAlone: boolean;
}

export const usageOfStream = (seen: StreamUsage): Usage =>
  seen.inputTokens + seen.outputTokens > 0 ? pickUsage(seen) : seen.elsewhere;

/**
 * Like `readUsage`, for the events of a stream in their order. Only the placeholder in `message_start` is replaced by a
 * zero output, and only if the input is not zero too: a refusal ends with no output, an error with zeros for everything.
 * @param isWhole it has all that was sent, and not only what usage is read from
 */
export function readEventUsage(event: unknown, seen: StreamUsage, isWhole = true): StreamUsage {
  if (!isObject(event)) return seen;
  const { message, usage: reported, choices } = event;
  const usage = readReported(event, seen);
  const elsewhere = readElsewhere(event, seen.elsewhere);
  const hasOutput = isObject(reported) && findCount(reported, tokenCountNames.outputTokens) !== undefined;
  const comesAlone = isWhole && hasOutput && Array.isArray(choices) && choices.every(isEmptyChoice);
  const isAlone = seen.isAlone || comesAlone;
  if (isObject(message)) return { ...usage, outputIsOpening: true, isAlone, elsewhere };
  const isOpening = seen.outputIsOpening && !hasOutput;
  const isRefusal = isOpening && isObject(reported) && reported.output_tokens === 0 && reported.input_tokens !== 0;
  const outputTokens = isRefusal ? 0 : usage.outputTokens;
  return { ...usage, outputTokens, outputIsOpening: isOpening && !isRefusal, isAlone, elsewhere };
}

function readCounts(counts: unknown, seen: Usage): Usage {
  if (!isObject(counts)) return seen;
  return {
    inputTokens: findCount(counts, tokenCountNames.inputTokens) ?? seen.inputTokens,
    outputTokens: findCount(counts, tokenCountNames.outputTokens) ?? seen.outputTokens,
    cachedInputTokens: findPart(counts, partNames.cachedInputTokens) ?? seen.cachedInputTokens,
    reasoningTokens: findPart(counts, partNames.reasoningTokens) ?? seen.reasoningTokens,
  } satisfies Record<UsageField, unknown>;
}

function findPart(counts: Record<string, unknown>, { names, holders, detail }: PartNames): number | undefined {
  const count = findCount(counts, names);
  if (count !== undefined) return count;
  for (const holder of holders) {
    const details = counts[holder];
    if (isObject(details)) return findCount(details, [detail]);
  }
  return undefined;
}

/** Undefined unless it is a possible count above zero. */
export function findCount(counts: Record<string, unknown>, names: readonly string[]): number | undefined {
  for (const name of names) {
    const count = counts[name];
    if (typeof count === "number" && Number.isInteger(count) && count > 0 && count <= maxCount) return count;
  }
  return undefined;
}

/** One that tells nothing, beside which LiteLLM and OpenRouter send usage. */
export function isEmptyChoice(choice: unknown): boolean {
  if (!isObject(choice)) return false;
  return Object.entries(choice).every(
    ([name, value]) => name === "index" || isEmpty(value) || (name === "delta" && isEmptyDelta(value)),
  );
}

function isEmptyDelta(delta: unknown): boolean {
  return isObject(delta) && Object.entries(delta).every(([name, value]) => name === "role" || isEmpty(value));
}

/** Null, or an empty string, array or object. */
export function isEmpty(value: unknown): boolean {
  if (value === null || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** The members that are kept, wherever they stand: usage and how a response failed are read from few places of these. */
const followed: ReadonlySet<string> = new Set(
  [
    usageHolders,
    ["usage", "x_groq", "choices", "timings", "id", "type", "error", "code"],
    Object.values(tokenCountNames),
    Object.values(partNames).map(({ names, holders, detail }) => [names, holders, detail]),
    [totalName, cacheWriteName, cachedTimingName],
  ].flat(3),
);

/** For a JSON text of any length that arrives in pieces, and one that is cut: what usage is read from. */
export const createUsageParser = (): PushParser => new PushParser(followed, totalName, parseJson);

const usageName = Buffer.from('usage"');
const escape = Buffer.from("\\u00");
const escapedLetters = [Buffer.from("\\u006"), Buffer.from("\\u007")];

/**
 * Whether bytes that are not part of a longer JSON text may hold usage. Nearly every event of a stream holds none, and
 * this check is many times cheaper than parsing. May return true if there is none, never false if there is some.
 */
export function mentionsUsage(bytes: Uint8Array): boolean {
  // "us\u0061ge" is the same name.
  return indexOfBytes(bytes, usageName, 0) >= 0 || indexOfBytes(bytes, escape, 0) >= 0;
}

/** The same for a whole JSON text, more exact: whether a member of that name is an object. */
export function mayHoldUsage(json: Uint8Array): boolean {
  if (hasMember(json, usageName, braceOpen)) return true;
  return indexOfBytes(json, escape, 0) >= 0 && escapedLetters.some((letter) => indexOfBytes(json, letter, 0) >= 0);
}

export const maxParsedLength = 64 * 1024;

/**
 * The runtime parses a short JSON text in a tenth of the time that our own parser takes, which is for what is long, arrives
 * in pieces or is compressed. Undefined if the text is long, or not JSON: a truncated one may still hold its usage.
 */
export function findShortJson(bytes: Uint8Array): unknown {
  return bytes.length > maxParsedLength ? undefined : parseJson(utf8(bytes));
}

/**
 * How a backend treats the usage of streams, as far as its responses have shown. In the memory of this process: what is
 * forgotten is learnt again, by one request more.
 */
export type UsageHabits = ReturnType<typeof createUsageHabits>;

/** The habits of each backend, by its name. */
export type HabitsOf = (backend: string) => UsageHabits;

export function createHabits(monotonic: () => number): HabitsOf {
  const known = new Map<string, UsageHabits>();
  return (backend) => known.getOrInsertComputed(backend, () => createUsageHabits(monotonic));
}

/** Then it is asked again: it may have been upgraded. */
const refusalMs = 60 * 60_000;

function createUsageHabits(monotonic: () => number) {
  const refusedAt = new Map<Endpoint, number>();
  const unasked = new Set<Endpoint>();
  return {
    /** It refused a request because of `stream_options`, and took the same one without. */
    refusesOptions: (endpoint: Endpoint): boolean => monotonic() - (refusedAt.get(endpoint) ?? -Infinity) < refusalMs,
    learnRefusal: (endpoint: Endpoint): void => void refusedAt.set(endpoint, monotonic()),
    /** It sends a frame of only usage although it is not asked to; the frame is then the client's. */
    sendsUnasked: (endpoint: Endpoint): boolean => unasked.has(endpoint),
    /** @param isSent whether a whole stream had such a frame, of a request that did not ask for it */
    learnUnasked(endpoint: Endpoint, isSent: boolean): void {
      if (isSent) unasked.add(endpoint);
      else unasked.delete(endpoint);
    },
  };
}
