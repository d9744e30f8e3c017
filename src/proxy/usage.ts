/** Tokens of one response. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
}

export const noUsage: Usage = { inputTokens: 0, outputTokens: 0 };

/** Usage while a stream is being read. */
export interface SeenUsage extends Usage {
  /** The output is the number that a Messages stream opens with, before there is any: a first real one may be zero. */
  outputIsOpening?: boolean;
}

/** Where an answer or an event keeps its `usage`: on top, or in a Messages `message`, or in a Responses `response`. */
export const usageHolders = ["message", "response"] as const;

/** Chat, completions and embeddings say prompt and completion; Messages and Responses say input and output. */
export const usageNames = {
  inputTokens: ["prompt_tokens", "input_tokens"],
  outputTokens: ["completion_tokens", "output_tokens"],
} as const;

/**
 * What one parsed answer or event adds to what was seen before. A count that is there replaces an earlier one; null,
 * nonsense and zero never do: servers send them before the real value and, after an error, behind it. The one number
 * that a zero replaces is the output in `message_start`, a placeholder, unless the input is said to be zero as well: a
 * refusal ends with no output, an error with zeros for everything.
 */
export function readUsage(value: unknown, seen: SeenUsage): SeenUsage {
  if (!isObject(value)) return seen;
  let usage = readCounts(value.usage, seen);
  for (const holder of usageHolders) {
    const held = value[holder];
    if (!isObject(held)) continue;
    usage = readCounts(held.usage, usage);
    if (holder === "message" && isObject(held.usage)) usage = { ...usage, outputIsOpening: true };
  }
  return usage;
}

function readCounts(counts: unknown, seen: SeenUsage): SeenUsage {
  if (!isObject(counts)) return seen;
  const inputTokens = findCount(counts, usageNames.inputTokens) ?? seen.inputTokens;
  const outputTokens = findCount(counts, usageNames.outputTokens);
  if (outputTokens !== undefined) return { inputTokens, outputTokens };
  const isNone = counts.output_tokens === 0 && counts.input_tokens !== 0;
  if (seen.outputIsOpening === true && isNone) return { inputTokens, outputTokens: 0 };
  return { ...seen, inputTokens };
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
