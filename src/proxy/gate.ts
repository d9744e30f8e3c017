/**
 * The key that a request presents, `Authorization: Bearer K` or `x-api-key: K`. With both, the bearer one counts: it is
 * what SDKs let their users set, while `x-api-key` is often a leftover of the environment.
 */
export function findCredential(headers: Headers): string | undefined {
  const bearer = /^bearer +(\S+) *$/i.exec(headers.get("authorization") ?? "")?.[1];
  return bearer ?? (headers.get("x-api-key")?.trim() || undefined);
}
