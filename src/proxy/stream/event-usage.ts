// Reads token usage out of what backends send: out of parsed JSON (here), out of JSON in pieces (`json-usage.ts`), and
// out of compressed bodies (`decompress.ts`), whatever members a server reports it in.
//
// It keeps true: a count that is impossible is none; a long or hostile text takes no more memory than a short one, and
// one that is broken or ends early is read as far as possible. What holds no usage is mostly found out without parsing.
// It has no I/O, and does not decide what counts: `proxy/response/count.ts` does.

import { noUsage, pickUsage, type Usage, type UsageField, type UsagePart } from "../../domain/usage.ts";

/** A response or event has its `usage` at the top level, in a Messages `message` or in a Responses `response`. */
export const usageHolders = ["message", "response"] as const;

/** Chat, completions and embeddings use prompt and completion; Messages and Responses use input and output. */
export const tokenCountNames = {
  inputTokens: ["prompt_tokens", "input_tokens"],
  outputTokens: ["completion_tokens", "output_tokens"],
} as const;

export const totalName = "total_tokens";

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

export const partNames: Readonly<Record<UsagePart, PartNames>> = {
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
  const found =
    [readReported(value, noUsage), readElsewhere(value, noUsage), readTotal(value)].find(hasCounts) ?? noUsage;
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

function hasCounts({ inputTokens, outputTokens }: Usage): boolean {
  return inputTokens > 0 || outputTokens > 0;
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

export const usageOfStream = (seen: StreamUsage): Usage => (hasCounts(seen) ? pickUsage(seen) : seen.elsewhere);

/**
 * Like `readUsage`, for the events of a stream in their order. Only the placeholder in `message_start` is replaced by a
 * zero output, and only if the input is not zero too: a refusal ends with no output, an error with zeros for everything.
 * @param isWhole it has all that was sent, and not only what usage is read from
 */
export function readEventUsage(event: unknown, seen: StreamUsage, isWhole = true): StreamUsage {
  if (!isObject(event)) return seen;
  const usage = readReported(event, seen);
  const elsewhere = readElsewhere(event, seen.elsewhere);
  const isAlone = seen.isAlone || (isWhole && isUsageAlone(event));
  if (isObject(event.message)) return { ...usage, outputIsOpening: true, isAlone, elsewhere };
  const { outputIsOpening } = seen;
  if (!outputIsOpening || !isObject(event.usage)) return { ...usage, outputIsOpening, isAlone, elsewhere };
  const isRefusal = event.usage.output_tokens === 0 && event.usage.input_tokens !== 0;
  if (isRefusal) return { ...usage, outputTokens: 0, outputIsOpening: false, isAlone, elsewhere };
  const hasOutput = findCount(event.usage, tokenCountNames.outputTokens) !== undefined;
  return { ...usage, outputIsOpening: !hasOutput, isAlone, elsewhere };
}

function isUsageAlone({ usage, choices }: Record<string, unknown>): boolean {
  const hasOutput = isObject(usage) && findCount(usage, tokenCountNames.outputTokens) !== undefined;
  return hasOutput && Array.isArray(choices) && choices.every(isEmptyChoice);
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
