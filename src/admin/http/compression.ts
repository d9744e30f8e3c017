import { Duplex } from "node:stream";
import { promisify } from "node:util";
import { createGzip, gzip } from "node:zlib";

/** A smaller body fits one packet anyway. */
const minBytes = 1400;

const gzipInBackground = promisify(gzip);
/** Up to a ninth less than at the default of 6 for the list of 500 keys, and no more at 9. */
const level = 8;

interface HandledRequest {
  request: Pick<Request, "method" | "headers">;
  /** What the handler has returned. */
  responseValue: unknown;
}

/**
 * Compresses a JSON body for a client that accepts gzip. A stream stays one, read as fast as the client takes it. Not for
 * a body that has a secret and text that somebody else may choose: its length would reveal the secret (BREACH).
 * @returns undefined to leave the response as it is
 */
export async function compressJson({ request, responseValue }: HandledRequest): Promise<Response | undefined> {
  if (request.method !== "GET" || !acceptsGzip(request.headers.get("accept-encoding") ?? "")) return undefined;
  if (responseValue instanceof Response) return compressStream(responseValue);
  if (!isPlain(responseValue)) return undefined;
  const body = Buffer.from(JSON.stringify(responseValue));
  if (body.length < minBytes) return undefined;
  const headers = { "content-type": "application/json;charset=utf-8", ...compressed };
  return new Response(new Uint8Array(await gzipInBackground(body, { level })), { headers });
}

const compressed = { "content-encoding": "gzip", vary: "accept-encoding" };

function compressStream({ body, status, headers }: Response): Response | undefined {
  const type = headers.get("content-type") ?? "";
  if (body === null || status !== 200 || !type.startsWith("application/json")) return undefined;
  return new Response(body.pipeThrough(gzipStream()), {
    headers: { "content-type": type, ...compressed },
  });
}

/** Like `new CompressionStream("gzip")`, which takes no level. */
const gzipStream = (): CompressionStream => Duplex.toWeb(createGzip({ level })) as unknown as CompressionStream;

/** Elysia wraps an error in an object of a class of its own. */
const isPlain = (value: unknown): boolean =>
  Array.isArray(value) ||
  (typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype);

/** RFC 9110, section 12.5.3. */
export function acceptsGzip(acceptEncoding: string): boolean {
  const weights = new Map(
    acceptEncoding.split(",").map((item) => {
      const [name = "", ...parameters] = item.split(";").map((part) => part.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith("q="));
      return [name, weight === undefined ? 1 : Number(weight.slice(2))];
    }),
  );
  return (weights.get("gzip") ?? weights.get("*") ?? 0) > 0;
}
