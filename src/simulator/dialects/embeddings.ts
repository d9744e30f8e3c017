import { type SimulatedResponse, type Job, jsonAnswer } from "../answer.ts";
import { countTokens } from "../text.ts";

const defaultDimensions = 384;

/** POST /v1/embeddings: for the same text always the same vector, of length 1. */
export function answerEmbeddings(job: Job): SimulatedResponse {
  const { dimensions = defaultDimensions, encoding_format: encoding } = job.body;
  const size = typeof dimensions === "number" ? dimensions : defaultDimensions;
  const data = inputs(job.body["input"]).map((input, index) => {
    const vector = vectorOf(input, size);
    return { object: "embedding", index, embedding: encoding === "base64" ? base64(vector) : Array.from(vector) };
  });
  const usage = job.usage ?? { inputTokens: job.inputTokens, outputTokens: 0 };
  const told = {
    prompt_tokens: usage.inputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    completion_tokens: usage.outputTokens,
    prompt_tokens_details: null,
  };
  const members = { none: {}, null: { usage: null }, told: { usage: told } }[job.usageMode];
  const body = { id: `embd-${job.id}`, object: "list", created: job.created, model: job.model, data, ...members };
  return jsonAnswer(200, body, usage, job.usageMode === "told");
}

/** One text, several, the token ids of one, or the token ids of several. */
function inputs(input: unknown): readonly unknown[] {
  if (!Array.isArray(input)) return [input];
  return typeof input[0] === "number" ? [input] : input;
}

function vectorOf(input: unknown, size: number): Float32Array {
  const seed = Bun.hash.crc32(JSON.stringify(input) ?? "") + countTokens(input);
  const vector = Float32Array.from({ length: size }, (_, index) => Math.sin(seed + index * 0.618));
  const norm = Math.hypot(...vector);
  return vector.map((value) => value / norm);
}

/** Little-endian 32-bit floats. */
function base64(vector: Float32Array): string {
  return Buffer.from(vector.buffer).toString("base64");
}
