/**
 * The client's `X-Request-Id`, if it is at most 128 visible ASCII characters, or a new one. New ones sort by time: an
 * index of them grows at its end only.
 */
export function requestIdOf(headers: Headers): string {
  const given = headers.get("x-request-id");
  return given !== null && /^[\x21-\x7e]{1,128}$/.test(given) ? given : Bun.randomUUIDv7();
}
