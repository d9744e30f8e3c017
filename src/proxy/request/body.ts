/** Larger JSON bodies are refused where a rewrite would have to hold them. */
export const maxJsonBodyBytes = 128 * 1024 * 1024;

/**
 * Whether a request's body may need a rewrite: a POST with a JSON content type, or with none. What `Content-Encoding`
 * says is not asked: many backends do not ask either, and a compressed body shows by itself that it is no JSON text.
 */
export function isRewritable(request: Request): boolean {
  if (request.method !== "POST") return false;
  const type = request.headers.get("content-type") ?? "";
  return type === "" || isJson(type);
}

/** `application/json` and the `+json` types (RFC 6839), whatever their parameters. */
export function isJson(contentType: string): boolean {
  return /^\s*[\w.+-]+\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(contentType);
}

/** The whole body, or undefined where it is longer than `maxBytes`: no more than that is held. */
export function findWholeBody(
  request: Request,
  maxBytes = maxJsonBodyBytes,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const declared = request.headers.get("content-length");
  if (declared === null) return gatherBody(request, maxBytes);
  return Number(declared) > maxBytes ? Promise.resolve(undefined) : request.bytes();
}

async function gatherBody(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (request.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body) {
    length += chunk.byteLength;
    if (length > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Text of UTF-8 bytes such that encoding it again gives the same bytes; undefined where that cannot be. */
export function findText(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}
