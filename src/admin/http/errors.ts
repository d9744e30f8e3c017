import type { Log } from "../../log/log.ts";
import { StorageError } from "../../store/storage-error.ts";

/** A failure as the client sees it: the status, the headers and `{"error": message}`. */
export class ApiError extends Error {
  override name = "ApiError";
  constructor(
    readonly status: 400 | 401 | 403 | 404 | 405 | 408 | 409 | 413 | 415 | 429 | 500 | 502 | 503,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/** Every response of the admin API has them. */
export const adminHeaders = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

/** Answers requests that no router can take. */
export const malformedHostResponse = (): Response =>
  Response.json({ error: "The Host header is missing or malformed" }, { status: 400, headers: adminHeaders });

export const authenticationRequired = (): ApiError => new ApiError(401, "Authentication required");

export const databaseUnavailable = (): ApiError =>
  new ApiError(503, "The database is not available, try again later", { "retry-after": "5" });

/** Turns any failure into what a client may see: nothing that the client sent, and none of our internals. Logs the rest. */
export function toApiError(error: unknown, path: string, log: Log): ApiError {
  if (error instanceof ApiError) return error;
  const queryMessage = findQueryMessage(error);
  if (queryMessage !== undefined) return new ApiError(400, queryMessage);
  if (error instanceof StorageError) {
    log.warn("Database unavailable; admin request failed", { path, error: error.message });
    return databaseUnavailable();
  }
  log.error("Admin request failed", { path, error: error instanceof Error ? (error.stack ?? error.message) : null });
  return new ApiError(500, "Internal error");
}

/**
 * The message in the query's schema, which Elysia reports as `customError`. A response that breaks its own schema has
 * none: that is a failure of ours.
 */
function findQueryMessage(error: unknown): string | undefined {
  const { type, customError } = (error ?? {}) as { type?: unknown; customError?: unknown };
  return type === "query" && typeof customError === "string" ? customError : undefined;
}
