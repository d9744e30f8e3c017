import type { Generation } from "../generation.ts";
import { jsonResponse, type SimulatedResponse } from "../simulated-response.ts";
import { countTokens } from "../text.ts";

const defaultDimensions = 384;

/** POST /v1/embeddings. The same text always has the same vector, of length 1. */
export function embeddingsResponse(generation: Generation): SimulatedResponse {
  const { dimensions = defaultDimensions, encoding_format: encoding } = generation.body;
  const size = typeof dimensions === "number" ? dimensions : defaultDimensions;
  const data = inputs(generation.body["input"]).map((input, index) => {
    const vector = vectorOf(input, size);
    return { object: "embedding", index, embedding: encoding === "base64" ? base64(vector) : Array.from(vector) };
  });
  const usage = generation.usage ?? { inputTokens: generation.inputTokens, outputTokens: 0 };
  const reported = {
    prompt_tokens: usage.inputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    completion_tokens: usage.outputTokens,
    prompt_tokens_details: null,
  };
  const members = { none: {}, null: { usage: null }, reported: { usage: reported } }[generation.usageMode];
  const body = {
    id: `embd-${generation.id}`,
    object: "list",
    created: generation.created,
    model: generation.model,
    data,
    ...members,
  };
  return jsonResponse(200, body, usage, generation.usageMode === "reported");
}

/** The input is one text, several texts, the token ids of one text, or those of several. */
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
