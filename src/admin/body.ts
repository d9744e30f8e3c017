import { ApiError } from "./errors.ts";

const maxBodyBytes = 1024 * 1024;

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Reads the JSON object in a request's body. Returns a failure instead of throwing it, because the CSRF check looks for
 * its token in the body and comes before any complaint about the body.
 */
export async function readJsonObject(request: Request): Promise<JsonObject | ApiError> {
  const contentType = request.headers.get("content-type");
  if (request.body === null && contentType === null) return invalidJson();
  if (contentType === null || !/^\s*application\/json\s*(;|$)/i.test(contentType))
    return new ApiError(415, "Content-Type must be application/json");
  // The read fails if the client leaves while it sends. That is not our failure, and no response can reach it.
  const bytes = await readAtMost(request, maxBodyBytes).catch(() => new Uint8Array());
  if (bytes === undefined) return new ApiError(413, "Body must be at most 1 MiB");
  return parseObject(bytes);
}

/** @throws ApiError if reading the body failed */
export function acceptedBody(body: JsonObject | ApiError): JsonObject {
  if (body instanceof ApiError) throw body;
  return body;
}

/** @returns undefined if there are more than `limit` bytes; the rest is not read */
async function readAtMost(request: Request, limit: number): Promise<Uint8Array | undefined> {
  if (Number(request.headers.get("content-length") ?? 0) > limit) return undefined;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > limit) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parseObject(bytes: Uint8Array): JsonObject | ApiError {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : invalidJson();
  } catch {
    return invalidJson();
  }
}

const invalidJson = () => new ApiError(400, "Invalid JSON body");
