import { ApiError } from "./errors.ts";

interface BodyLimits {
  maxKib: number;
  /** Bounds the time of the whole body. */
  timeoutMs: number;
}

const defaultLimits: BodyLimits = { maxKib: 1024, timeoutMs: 30_000 };

/** Anyone may send a login. */
export const loginBodyLimits: BodyLimits = { maxKib: 8, timeoutMs: 5000 };

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Reads the JSON object in a request's body. Returns a failure instead of throwing it, because the CSRF check looks for
 * its token in the body and comes before any complaint about the body.
 */
export async function readJsonObject(request: Request, limits = defaultLimits): Promise<JsonObject | ApiError> {
  const problem = findHeadProblem(request, limits);
  if (problem !== undefined) return problem;
  // The read fails if the client leaves while it sends. That is not our failure, and no response can reach it.
  const bytes = await readAtMost(request, limits).catch(() => new Uint8Array());
  return bytes instanceof ApiError ? bytes : parseObject(bytes);
}

/** What is wrong with a body as its headers describe it. */
export function findHeadProblem({ headers, body }: Request, limits: BodyLimits): ApiError | undefined {
  const contentType = headers.get("content-type");
  if (body === null && contentType === null) return invalidJson();
  if (contentType === null || !/^\s*application\/json\s*(;|$)/i.test(contentType))
    return new ApiError(415, "Content-Type must be application/json");
  return Number(headers.get("content-length") ?? 0) > limits.maxKib * 1024 ? tooLarge(limits) : undefined;
}

const wholeRequests = new WeakSet<Request>();

/** Whether its body was read here to its end. */
export const wasReadToEnd = (request: Request): boolean => wholeRequests.has(request);

/** A stream that is cancelled costs nothing more, while Bun would buffer without limit what nothing reads. */
export async function readAtMost(request: Request, limits: BodyLimits): Promise<Uint8Array | ApiError> {
  const reader = (request.body ?? new Blob().stream()).getReader();
  let isTimedOut = false;
  const cancel = (): void => void reader.cancel().catch(() => {});
  const timer = setTimeout(() => {
    isTimedOut = true;
    cancel();
  }, limits.timeoutMs);
  try {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for (;;) {
      const { value } = await reader.read();
      if (isTimedOut) return new ApiError(408, `Body must arrive within ${limits.timeoutMs / 1000} seconds`);
      if (value === undefined) {
        wholeRequests.add(request);
        return Buffer.concat(chunks);
      }
      size += value.length;
      if (size > limits.maxKib * 1024) return tooLarge(limits);
      chunks.push(value);
    }
  } finally {
    clearTimeout(timer);
    cancel();
  }
}

function parseObject(bytes: Uint8Array): JsonObject | ApiError {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : invalidJson();
  } catch {
    return invalidJson();
  }
}

const tooLarge = ({ maxKib }: BodyLimits): ApiError =>
  new ApiError(413, `Body must be at most ${maxKib < 1024 ? `${maxKib} KiB` : `${maxKib / 1024} MiB`}`);

const invalidJson = () => new ApiError(400, "Invalid JSON body");
