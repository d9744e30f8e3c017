import type { Usage } from "../../domain.ts";

/** A response or event has its `usage` at the top level, in a Messages `message` or in a Responses `response`. */
export const usageHolders = ["message", "response"] as const;

/** Chat, completions and embeddings use prompt and completion; Messages and Responses use input and output. */
export const tokenCountNames = {
  inputTokens: ["prompt_tokens", "input_tokens"],
  outputTokens: ["completion_tokens", "output_tokens"],
} as const;

/**
 * Adds the counts of one parsed response or event to those seen before. A positive count replaces an earlier one; null,
 * zero and impossible values never do: servers send them before the real value and, on errors, after it.
 */
export function readUsage(value: unknown, seen: Usage): Usage {
  if (!isObject(value)) return seen;
  let usage = readCounts(value.usage, seen);
  for (const holder of usageHolders) {
    const held = value[holder];
    if (isObject(held)) usage = readCounts(held.usage, usage);
  }
  return usage;
}

/** Usage while a stream is being read. */
export interface StreamUsage extends Usage {
  /** The output is the placeholder that a Messages stream opens with. */
  outputIsOpening: boolean;
}

/**
 * Like `readUsage`, for the events of a stream in their order. Only the placeholder in `message_start` is replaced by a
 * zero output, and only if the input is not zero too: a refusal ends with no output, an error with zeros for everything.
 */
export function readEventUsage(event: unknown, seen: StreamUsage): StreamUsage {
  if (!isObject(event)) return seen;
  const { inputTokens, outputTokens } = readUsage(event, seen);
  if (isObject(event.message)) return { inputTokens, outputTokens, outputIsOpening: true };
  const { outputIsOpening } = seen;
  if (!outputIsOpening || !isObject(event.usage)) return { inputTokens, outputTokens, outputIsOpening };
  const isRefusal = event.usage.output_tokens === 0 && event.usage.input_tokens !== 0;
  if (isRefusal) return { inputTokens, outputTokens: 0, outputIsOpening: false };
  const hasOutput = findCount(event.usage, tokenCountNames.outputTokens) !== undefined;
  return { inputTokens, outputTokens, outputIsOpening: !hasOutput };
}

function readCounts(counts: unknown, seen: Usage): Usage {
  if (!isObject(counts)) return seen;
  return {
    inputTokens: findCount(counts, tokenCountNames.inputTokens) ?? seen.inputTokens,
    outputTokens: findCount(counts, tokenCountNames.outputTokens) ?? seen.outputTokens,
  };
}

function findCount(counts: Record<string, unknown>, names: readonly string[]): number | undefined {
  for (const name of names) {
    const count = counts[name];
    if (typeof count === "number" && Number.isSafeInteger(count) && count > 0) return count;
  }
  return undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
