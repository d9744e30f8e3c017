import { randomUUID } from "node:crypto";

/** The client's `X-Request-Id`, if it is at most 128 visible ASCII characters, or a new one. */
export function requestIdOf(headers: Headers): string {
  const given = headers.get("x-request-id");
  return given !== null && /^[\x21-\x7e]{1,128}$/.test(given) ? given : randomUUID();
}
