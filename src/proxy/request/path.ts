/** Segments below `/v1/` that the guard can see; longer paths are refused. */
const maxSegments = 64;
/**
 * Up to here a path may also hold empty segments (`//`, a trailing slash); no API goes as deep. A pattern takes 4 KB and
 * 20 µs of the start, and each segment more here makes a third more of them.
 */
const maxSegmentsWithEmpty = 8;
const maxEmptySegments = 2;

/**
 * Patterns for `Bun.serve({ routes })` that together match every path below `/v1/` that may pass. Bun normalises dot
 * segments away before `request.url` can be read; the parameters of its native routes alone hold the segments as they
 * came, and a parameter never matches an empty segment: so there is a pattern for each arrangement (Bun 1.4.5).
 * Remove when Bun gives the raw target of a request.
 */
export function guardedPatterns(): string[] {
  const patterns: string[] = [];
  const extend = (segments: readonly string[], empty: number): void => {
    if (segments.length > 0) patterns.push(`/v1/${segments.join("/")}`);
    if (segments.length === maxSegmentsWithEmpty) return;
    extend([...segments, `:s${segments.length}`], empty);
    if (empty < maxEmptySegments) extend([...segments, ""], empty + 1);
  };
  extend([], 0);
  for (let length = maxSegmentsWithEmpty + 1; length <= maxSegments; length++) {
    patterns.push(`/v1/${Array.from({ length }, (_, index) => `:s${index}`).join("/")}`);
  }
  return patterns;
}

/** Nobody honest encodes a path more often than this. */
const maxDecodings = 8;

/** Whether one segment holds `..`, plain or percent-encoded, however often encoded. */
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

/** Whether a Host header is a name or an address, with or without a port (RFC 9110 section 7.2). */
export function isHost(host: string | null): boolean {
  return host !== null && /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=-]+)(?::\d{1,5})?$/i.test(host);
}

/**
 * The path of a request's URL as it came, percent-encoding kept; undefined where the Host made the URL relative.
 * Remove when `request.url` is absolute for an invalid Host (Bun 1.4.5).
 */
export function findPathAndQuery(url: string): string | undefined {
  if (!url.startsWith("http")) return undefined;
  const start = url.indexOf("/", url.indexOf("://") + 3);
  return start === -1 ? undefined : url.slice(start);
}
