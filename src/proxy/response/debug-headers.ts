import { expectedShare } from "../../domain/backends.ts";
import { cachedTokensOf } from "../../domain/usage.ts";
import type { RequestTracker } from "../request-tracker.ts";

/** Where the request went, for a client that asks. */
export function addDebugHeaders(
  headers: Headers,
  { backend, sends, reason = "only", expectation, written }: RequestTracker,
): void {
  if (backend === undefined) return;
  headers.set("x-tollgate-backend", backend);
  headers.set("x-tollgate-sends", String(sends));
  headers.set("x-tollgate-reason", reason);
  if (expectation !== undefined) headers.set("x-tollgate-expected-cache", expectedShare(expectation).toFixed(2));
  // The head of a stream cannot wait for these.
  const cached = written?.usage === undefined ? 0 : cachedTokensOf(written.usage);
  if (cached > 0) headers.set("x-tollgate-cached-tokens", String(cached));
}
