/** Segments below `/v1/` that the guard can see; longer paths are refused. */
const maxSegments = 64;
/**
 * Up to here a path may also hold empty segments (`//`, a trailing slash); no API goes as deep. A pattern costs 4 KB and
 * 20 µs at start, and each segment more here adds a third to their number.
 */
const maxSegmentsWithEmpty = 8;
const maxEmptySegments = 2;

type Handler = (request: Request) => Response | Promise<Response>;
type NativeHandler = (request: Bun.BunRequest) => Response | Promise<Response>;

/** What `Bun.serve` takes. */
export interface GuardedRoutes {
  routes: Record<string, NativeHandler>;
  fetch: Handler;
}

/**
 * The path guard: `refuse` responds to every path below `/v1/` that holds `..`, `serve` to everything else.
 *
 * Bun normalises dot segments away before `request.url` can be read; only the parameters of its native routes hold the
 * segments as they came, and a parameter never matches an empty segment, so there is a pattern for each arrangement (Bun
 * 1.4.5). Remove the patterns when Bun exposes a request's raw target.
 */
export function guardPaths(serve: Handler, refuse: Handler): GuardedRoutes {
  const guard: NativeHandler = (request) => {
    const params: Record<string, string> = request.params;
    for (const name in params) if (hasDotDot(params[name] ?? "")) return refuse(request);
    return serve(request);
  };
  const routes = Object.fromEntries(guardedPatterns().map((pattern) => [pattern, guard]));
  // Bun reads `\` as `/`, but only after its routes have matched.
  const guardBackslash: NativeHandler = (request) =>
    /^v1\\/i.test(String(Object.values(request.params)[0])) ? guard(request) : serve(request);
  return {
    // A path that no pattern matches cannot be checked.
    routes: { ...routes, "/v1/*": refuse, "/:first": guardBackslash },
    // A URL that is below `/v1/` but came past the patterns was only normalised into it.
    fetch: (request) => (isBelowV1(request.url) ? refuse(request) : serve(request)),
  };
}

/** Patterns that together match every path below `/v1/` that may pass. */
export function guardedPatterns(): string[] {
  const patterns: string[] = [];
  const extend = (segments: readonly string[], empty: number): void => {
    if (segments.length > 0) patterns.push(`/v1/${segments.join("/")}`);
    if (segments.length === maxSegmentsWithEmpty) return;
    extend([...segments, `:s${segments.length}`], empty);
    if (empty < maxEmptySegments) extend([...segments, ""], empty + 1);
  };
  extend([], 0);
  for (let length = 1; length <= maxSegments; length++) {
    const segments = Array.from({ length }, (_, index) => `:s${index}`).join("/");
    if (length > maxSegmentsWithEmpty) patterns.push(`/v1/${segments}`);
    // A base URL with a slash at its end.
    patterns.push(`//v1/${segments}`);
  }
  return patterns;
}

/** No honest client encodes a path more often than this. */
const maxDecodings = 8;

/** Whether a segment holds `..`, plain or percent-encoded, however often encoded. */
export function hasDotDot(segment: string): boolean {
  let text = segment;
  for (let decodings = 0; decodings <= maxDecodings; decodings++) {
    if (text.includes("..")) return true;
    if (!text.includes("%")) return false;
    const decoded = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    if (decoded === text) return false;
    text = decoded;
  }
  return true;
}

function isBelowV1(url: string): boolean {
  return /^(?:https?:\/\/[^/]*)?\/+v1\//.test(url);
}
