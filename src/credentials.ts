/** The token of `Authorization: Bearer …`, the scheme in any case. */
export const findBearer = (headers: Headers): string | undefined =>
  /^bearer +(\S+) *$/i.exec(headers.get("authorization") ?? "")?.[1];

/** The API key that a request presents: as a bearer, or else as `x-api-key`. Schemes that are not ours leave the word to that. */
export const findCredential = (headers: Headers): string | undefined =>
  findBearer(headers) ?? (headers.get("x-api-key") || undefined);
