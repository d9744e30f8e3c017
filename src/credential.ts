/**
 * The API key that a request presents: `Authorization: Bearer K` (scheme in any case), or else `x-api-key: K`.
 * Other schemes are not ours and leave the word to `x-api-key`.
 */
export function presentedKey(headers: Headers): string | undefined {
  const bearer = /^bearer +(\S+) *$/i.exec(headers.get("authorization") ?? "");
  return bearer?.[1] ?? headers.get("x-api-key") ?? undefined;
}
