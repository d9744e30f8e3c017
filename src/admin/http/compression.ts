import { Duplex } from "node:stream";
import { promisify } from "node:util";
import { type BrotliOptions, brotliCompress, constants, createBrotliCompress, createGzip, gzip } from "node:zlib";

/** A smaller body fits one packet anyway. */
const minBytes = 1400;

/** Up to a ninth less than at the default of 6 for the list of 500 keys, and no more at 9. */
const gzipOptions = { level: 8 };
/** A quarter less than gzip for that list, in less time. A larger window makes it no smaller, and takes up to 4 MB. */
const brotliOptions: BrotliOptions = {
  params: { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: 17 },
};

/** The best first. Browsers accept br over HTTPS, and from localhost. */
const encodings = ["br", "gzip"] as const;
export type Encoding = (typeof encodings)[number];

const [gzipAll, brotliAll] = [promisify(gzip), promisify<Uint8Array, BrotliOptions, Buffer>(brotliCompress)];
const compressAll: Readonly<Record<Encoding, (body: Uint8Array) => Promise<Buffer>>> = {
  br: (body) => brotliAll(body, brotliOptions),
  gzip: (body) => gzipAll(body, gzipOptions),
};
/** Like `new CompressionStream("gzip")`, which takes no level. */
const compressor: Readonly<Record<Encoding, () => Duplex>> = {
  br: () => createBrotliCompress(brotliOptions),
  gzip: () => createGzip(gzipOptions),
};

/**
 * Compresses a JSON body for a client that accepts it. A stream stays one, read as fast as the client takes it. Not for
 * a body that has a secret and text that somebody else may choose: its length would reveal the secret (BREACH).
 * @returns undefined to leave the response as it is
 */
export async function compressJson({
  request,
  responseValue,
}: {
  request: Pick<Request, "method" | "headers">;
  /** What the handler has returned. */
  responseValue: unknown;
}): Promise<Response | undefined> {
  const encoding = acceptedEncoding(request.headers.get("accept-encoding") ?? "");
  if (request.method !== "GET" || encoding === undefined) return undefined;
  if (responseValue instanceof Response) return compressStream(responseValue, encoding);
  if (!isPlain(responseValue)) return undefined;
  const body = Buffer.from(JSON.stringify(responseValue));
  if (body.length < minBytes) return undefined;
  const headers = { "content-type": "application/json;charset=utf-8", ...headersOf(encoding) };
  return new Response(new Uint8Array(await compressAll[encoding](body)), { headers });
}

const headersOf = (encoding: Encoding) => ({ "content-encoding": encoding, vary: "accept-encoding" });

function compressStream({ body, status, headers }: Response, encoding: Encoding): Response | undefined {
  const type = headers.get("content-type") ?? "";
  if (body === null || status !== 200 || !type.startsWith("application/json")) return undefined;
  const compression = Duplex.toWeb(compressor[encoding]()) as unknown as CompressionStream;
  for (const [name, value] of Object.entries(headersOf(encoding))) headers.set(name, value);
  return new Response(body.pipeThrough(compression), { headers });
}

/** Elysia wraps an error in an object of a class of its own. */
const isPlain = (value: unknown): boolean =>
  Array.isArray(value) ||
  (typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype);

/** RFC 9110, section 12.5.3: the best that is not refused, whatever the weights of the others. */
export function acceptedEncoding(acceptEncoding: string): Encoding | undefined {
  const weights = new Map(
    acceptEncoding.split(",").map((item) => {
      const [name = "", ...parameters] = item.split(";").map((part) => part.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith("q="));
      return [name, weight === undefined ? 1 : Number(weight.slice(2))];
    }),
  );
  return encodings.find((encoding) => (weights.get(encoding) ?? weights.get("*") ?? 0) > 0);
}
