import { latin1 } from "../json/bytes.ts";
import { isLineEnd } from "../sse/events.ts";
import { type CompletionChunk, lastChunkMembers, parseObject } from "./completion-chunk.ts";
import { isEmpty, isEmptyChoice } from "./event-usage.ts";

/** Which choices of a stream have ended, as far as its chunks were read. */
export interface StreamProgress {
  follow(chunk: CompletionChunk): void;
  hasEnded(): boolean;
  /** Every choice that was seen has ended. */
  haveAllEnded(): boolean;
}

export function createStreamProgress(): StreamProgress {
  const running = new Set<string>();
  let hasEnded = false;
  return {
    follow({ ended, continued }) {
      for (const index of continued) running.add(index);
      for (const index of ended) running.delete(index);
      hasEnded ||= ended.length > 0;
    },
    hasEnded: () => hasEnded,
    haveAllEnded: () => hasEnded && running.size === 0,
  };
}

/**
 * Whether a chunk is sent only for its usage: without choices or, by LiteLLM and OpenRouter, with an empty choice after
 * every choice has ended.
 */
export function isUsageAlone(chunk: CompletionChunk, progress: StreamProgress): boolean {
  if (chunk.usage !== "object") return false;
  return !chunk.hasChoices || (progress.haveAllEnded() && !chunk.isFinal && hasEmptyChoices(chunk));
}

function hasEmptyChoices(chunk: CompletionChunk): boolean {
  const choices = chunk.parse()?.choices;
  return Array.isArray(choices) && choices.every(isEmptyChoice);
}

/** What means nothing without the usage. */
const envelope = new Set([
  "id",
  "object",
  "created",
  "model",
  "choices",
  "usage",
  "system_fingerprint",
  // OpenAI.
  "service_tier",
  "obfuscation",
  // Azure.
  "latency_checkpoint",
  // OpenRouter.
  "provider",
  // Mistral.
  "p",
  // Groq.
  "x_groq",
]);

/**
 * Whether a chunk that `isUsageAlone` holds anything else that a client could want, such as an error.
 * @param before the chunk before, to which `lastChunkMembers` are moved. A member that this one has too is not news
 */
export function holdsMore(chunk: CompletionChunk, before: CompletionChunk | undefined): boolean {
  const members = chunk.parse();
  if (members === undefined) return true;
  const known = before?.parse() ?? {};
  return Object.entries(members).some(([name, value]) => {
    if (envelope.has(name) || isEmpty(value)) return false;
    const isMoved = before !== undefined && lastChunkMembers.some((moved) => moved === name);
    return name === "error" || !(isMoved || name in known);
  });
}

const chunkStart = "data: {";

/** Whether a stream's last bytes, which no empty line ends, are the beginning of a chunk's line that is not an error. */
export function isTornChunk(rest: Uint8Array): boolean {
  if (rest.some(isLineEnd)) return false;
  const text = latin1(rest);
  const isStart = chunkStart.startsWith(text) || text.startsWith(chunkStart) || text.startsWith("data:{");
  return isStart && !text.includes('"error"') && parseObject(rest.subarray("data:".length)) === undefined;
}
