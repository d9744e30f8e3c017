/** Which pages may call `/v1/*` from a browser; undefined leaves CORS to the backend. */
export type CorsOrigins = "*" | readonly string[] | undefined;

const allowedMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
const preflightMaxAgeSeconds = "7200";

/**
 * Answers a preflight, which never carries a key (Fetch standard, "CORS-preflight fetch"); undefined for any other
 * request. The wanted headers are echoed, because `*` does not cover `authorization`.
 */
export function findPreflightResponse(request: Request, origins: CorsOrigins): Response | undefined {
  if (origins === undefined || request.method !== "OPTIONS") return undefined;
  if (!request.headers.has("origin") || !request.headers.has("access-control-request-method")) return undefined;
  const headers = new Headers({ vary: "Origin, Access-Control-Request-Headers" });
  const origin = allowedOrigin(request, origins);
  if (origin !== undefined) {
    headers.set("access-control-allow-origin", origin);
    headers.set("access-control-allow-methods", allowedMethods);
    headers.set("access-control-allow-headers", request.headers.get("access-control-request-headers") ?? "");
    headers.set("access-control-max-age", preflightMaxAgeSeconds);
  }
  return new Response(null, { status: 204, headers });
}

/** Puts our CORS headers in the place of the backend's, so that every answer carries them exactly once. */
export function applyCors(headers: Headers, request: Request, origins: CorsOrigins): void {
  if (origins === undefined) return;
  // Taken down first: deleting while iterating skips names.
  const theirs = headers
    .keys()
    .filter((name) => name.startsWith("access-control-"))
    .toArray();
  for (const name of theirs) headers.delete(name);
  if (origins !== "*") headers.append("vary", "Origin");
  const origin = allowedOrigin(request, origins);
  if (origin === undefined) return;
  headers.set("access-control-allow-origin", origin);
  // Rate limits and request ids are of use to a page too.
  headers.set("access-control-expose-headers", "*");
}

function allowedOrigin(request: Request, origins: "*" | readonly string[]): string | undefined {
  if (origins === "*") return "*";
  const origin = request.headers.get("origin");
  return origin !== null && origins.includes(origin) ? origin : undefined;
}
