/** The token in `Authorization: Bearer …`; the scheme is case-insensitive. */
export const findBearer = (headers: Headers): string | undefined =>
  /^bearer +(\S+) *$/i.exec(headers.get("authorization") ?? "")?.[1];

/** The API key of a request: the bearer token, or else `x-api-key`. Other authorization schemes are ignored. */
export const findCredential = (headers: Headers): string | undefined =>
  findBearer(headers) ?? (headers.get("x-api-key") || undefined);
