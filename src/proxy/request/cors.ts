/** The origins whose pages may call `/v1/*`. */
export type CorsOrigins = "*" | readonly string[];

const allowedMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
const preflightMaxAgeSeconds = "7200";

/**
 * The response to a preflight, which never carries a key (Fetch standard, "CORS-preflight fetch"); undefined for any
 * other request. The requested headers are echoed, because `*` does not cover `authorization`.
 */
export function findPreflightResponse(request: Request, origins: CorsOrigins): Response | undefined {
  if (request.method !== "OPTIONS") return undefined;
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

/** Replaces the backend's CORS headers with ours, so that every response carries them exactly once. */
export function applyCors(headers: Headers, request: Request, origins: CorsOrigins): void {
  // Listed first: deleting while iterating skips names.
  const backends = [...headers.keys()];
  for (const name of backends) if (name.startsWith("access-control-")) headers.delete(name);
  if (origins !== "*") headers.append("vary", "Origin");
  const origin = allowedOrigin(request, origins);
  if (origin === undefined) return;
  headers.set("access-control-allow-origin", origin);
  // Pages can use rate limits and request ids too.
  headers.set("access-control-expose-headers", "*");
}

function allowedOrigin(request: Request, origins: CorsOrigins): string | undefined {
  if (origins === "*") return "*";
  const origin = request.headers.get("origin");
  return origin !== null && origins.includes(origin) ? origin : undefined;
}
