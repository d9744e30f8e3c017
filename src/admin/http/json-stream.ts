import type { Log } from "../../log/log.ts";

const encoder = new TextEncoder();

/** Reads no chunk ahead of the client. TypeScript's lib lacks it; remove when `ReadableStream` has it. */
const { from: streamOf } = ReadableStream as unknown as {
  from(chunks: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array>;
};

/**
 * A response, by default of JSON, `before` + `middle` + `after`, whose middle is read as fast as the client takes it: neither a long
 * query nor a slow reader fills memory. Waits for the first chunk, so that storage that fails at once still gets an
 * error response. A later failure breaks the connection off, so that no client takes half a list for a whole one.
 */
export async function streamJson(
  { method }: Pick<Request, "method">,
  [before, middle, after]: readonly [string, AsyncIterable<Uint8Array>, string],
  log: Log,
  headers: Readonly<Record<string, string>> = { "content-type": "application/json;charset=utf-8" },
): Promise<Response> {
  const chunks = middle[Symbol.asyncIterator]();
  const first = await chunks.next();
  // Elysia (1.4.30) reads the body for HEAD to its end to find its length. Remove when it does not.
  if (method === "HEAD") {
    await chunks.return?.();
    return new Response(null, { headers });
  }
  async function* whole(): AsyncGenerator<Uint8Array> {
    try {
      yield encoder.encode(before);
      for (let chunk = first; chunk.done !== true; chunk = await chunks.next()) yield chunk.value;
      yield encoder.encode(after);
    } catch (error) {
      log.warn("Reading a response from storage failed; closing the connection", { error: String(error) });
      throw error;
    } finally {
      await chunks.return?.();
    }
  }
  return new Response(streamOf(whole()), { headers });
}

/** The points of a history by buckets. */
export const streamHistory = (
  request: Pick<Request, "method">,
  { days, bucket_minutes }: { days: number; bucket_minutes: number },
  points: AsyncIterable<Uint8Array>,
  log: Log,
): Promise<Response> =>
  streamJson(request, [`{"days":${days},"bucket_minutes":${bucket_minutes},"points":[`, points, "]}"], log);
