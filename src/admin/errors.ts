import type { Log } from "../log/log.ts";
import { StorageError } from "../store/store.ts";

/** A refusal in the words that the client reads: `{"error": message}`. */
export class ApiError extends Error {
  override name = "ApiError";
  constructor(
    readonly status: 400 | 401 | 403 | 404 | 405 | 409 | 413 | 415 | 429,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

export const authenticationRequired = (): ApiError => new ApiError(401, "Authentication required");

export interface ErrorBody {
  status: number;
  body: { error: string };
  headers: Readonly<Record<string, string>>;
}

/** What a stranger may read of a failure: nothing that they sent, and nothing of our inside. */
export function errorBodyOf(error: unknown, log: Log, path: string): ErrorBody {
  if (error instanceof ApiError)
    return { status: error.status, body: { error: error.message }, headers: error.headers };
  const badQuery = messageOfBadQuery(error);
  if (badQuery !== undefined) return { status: 400, body: { error: badQuery }, headers: {} };
  if (error instanceof StorageError) {
    log.warn("storage did not answer an admin request", { path, error: error.message });
    return {
      status: 503,
      body: { error: "The database is not available, try again later" },
      headers: { "retry-after": "5" },
    };
  }
  log.error("an admin request failed", { path, error: error instanceof Error ? (error.stack ?? error.message) : null });
  return { status: 500, body: { error: "Internal error" }, headers: {} };
}

/** Elysia refuses a query by the sentence beside its schema; an answer of ours that breaks its own schema is our failure. */
function messageOfBadQuery(error: unknown): string | undefined {
  const { type, customError } = (error ?? {}) as { type?: unknown; customError?: unknown };
  return type === "query" && typeof customError === "string" ? customError : undefined;
}
