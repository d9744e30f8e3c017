import { closeSync, openSync } from "node:fs";

/** The error codes of `fetch` for a response that breaks the rules of HTTP (Bun 1.4.5). */
const notHttp: ReadonlySet<unknown> = new Set([
  "InvalidContentLength",
  "InvalidHTTPResponse",
  "Malformed_HTTP_Response",
  "ResponseHeadersTooLarge",
  "UnrequestedUpgrade",
  "UnsupportedTransferEncoding",
]);

/** The code of the system or of TLS for a failure of `fetch`, or a word of ours. Never a message: those contain addresses. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  if (error.name === "TimeoutError") return "timeout";
  const code = "code" in error ? error.code : undefined;
  if (notHttp.has(code)) return "not_http";
  // A lookup needs descriptors too.
  if (code === "ENOTFOUND") return findDescriptorShortage() ?? code;
  return typeof code === "string" ? code : "unknown";
}

/** @returns EMFILE or ENFILE if no file can be opened */
function findDescriptorShortage(): string | undefined {
  try {
    closeSync(openSync("/dev/null", "r"));
    return undefined;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : undefined;
  }
}

/**
 * No connection was made. One that breaks is always `ECONNRESET`, or `EPROTO` if it breaks the rules of TLS, be that at its
 * start or after a request.
 */
const notSent: ReadonlySet<string> = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ENOENT", "ENOTFOUND"]);

export const provesUnconnected = (cause: string): boolean => notSent.has(cause);

/** @returns whether the cause proves that nothing of the request was sent: no connection, or a certificate that we refused */
export const provesUnsent = (cause: string): boolean =>
  provesUnconnected(cause) || /^(?:CERT|CRL|DEPTH_ZERO|ERR_TLS_CERT|SELF_SIGNED|UNABLE_TO)_/.test(cause);
