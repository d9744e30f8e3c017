/**
 * The API key that a request presents: `Authorization: Bearer K` (scheme in any case), or else `x-api-key: K`.
 * Other schemes are not ours and leave the word to `x-api-key`.
 */
export function findCredential(headers: Headers): string | undefined {
  const bearer = /^bearer +(\S+) *$/i.exec(headers.get("authorization") ?? "")?.[1];
  return bearer ?? (headers.get("x-api-key") || undefined);
}
