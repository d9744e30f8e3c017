/** The content of a streamed chat so far. */
export interface ChatProgress {
  text: string;
  reasoning: string;
  outputTokens: number | undefined;
  inputTokens: number | undefined;
  /** An error inside the stream. */
  error: string | undefined;
}

/** Reads the events of `/v1/chat/completions`, in pieces of any size. */
export function createChatReader() {
  let progress: ChatProgress = {
    text: "",
    reasoning: "",
    outputTokens: undefined,
    inputTokens: undefined,
    error: undefined,
  };
  let rest = "";
  return {
    /** @returns whether there was something new */
    push(text: string): boolean {
      const lines = (rest + text).split(/\r?\n/);
      rest = lines.pop() ?? "";
      const chunks = lines.map(chunkOf).filter((chunk) => chunk !== undefined);
      for (const chunk of chunks) progress = withChunk(progress, chunk);
      return chunks.length > 0;
    },
    progress: (): ChatProgress => progress,
  };
}

type Json = Readonly<Record<string, unknown>>;

/** The JSON of a `data` line; undefined for other lines and for the end. */
function chunkOf(line: string): Json | undefined {
  if (!line.startsWith("data:")) return undefined;
  try {
    return objectOf(JSON.parse(line.slice(5)));
  } catch {
    return undefined;
  }
}

function withChunk(before: ChatProgress, chunk: Json): ChatProgress {
  const choice = objectOf(Array.isArray(chunk["choices"]) ? chunk["choices"][0] : undefined);
  const delta = objectOf(choice?.["delta"]);
  const usage = objectOf(chunk["usage"]);
  const error = objectOf(chunk["error"]);
  return {
    text: before.text + textOf(delta?.["content"]),
    reasoning: before.reasoning + (textOf(delta?.["reasoning_content"]) || textOf(delta?.["reasoning"])),
    outputTokens: countOf(usage?.["completion_tokens"]) ?? before.outputTokens,
    inputTokens: countOf(usage?.["prompt_tokens"]) ?? before.inputTokens,
    error: error === undefined ? before.error : textOf(error["message"]) || "The stream ended with an error",
  };
}

const objectOf = (value: unknown): Json | undefined =>
  typeof value === "object" && value !== null ? (value as Json) : undefined;

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

const countOf = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

/** The message of an error response of `/v1`, of any of its APIs. */
export function errorMessage(body: string, status: number): string {
  try {
    const json = objectOf(JSON.parse(body));
    const message =
      textOf(objectOf(json?.["error"])?.["message"]) || textOf(json?.["error"]) || textOf(json?.["message"]);
    if (message !== "") return message;
  } catch {
    // Not JSON: the status has to do.
  }
  return `The server responded with status ${status}`;
}
