import { closeSync, openSync } from "node:fs";

/** What `fetch` calls a response that breaks the rules of HTTP (Bun 1.4.5). */
const notHttp: ReadonlySet<unknown> = new Set([
  "InvalidContentLength",
  "InvalidHTTPResponse",
  "Malformed_HTTP_Response",
  "ResponseHeadersTooLarge",
  "UnrequestedUpgrade",
  "UnsupportedTransferEncoding",
]);

/**
 * Names why a call of `fetch` failed: by the system's or the TLS library's code, or by a word of ours. Messages are left
 * out, since they contain addresses.
 */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  if (error.name === "TimeoutError") return "timeout";
  const code = "code" in error ? error.code : undefined;
  if (notHttp.has(code)) return "not_http";
  // Looking up a name takes descriptors too: without any, no name is found.
  if (code === "ENOTFOUND") return findDescriptorShortage() ?? code;
  return typeof code === "string" ? code : "unknown";
}

/** @returns EMFILE or ENFILE, if no file can be opened because of it */
function findDescriptorShortage(): string | undefined {
  try {
    closeSync(openSync("/dev/null", "r"));
    return undefined;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : undefined;
  }
}
