import type { Log } from "../log/log.ts";

const encoder = new TextEncoder();

/**
 * A JSON answer whose middle is read while the client takes it, so that neither a long query nor a slow reader fills
 * memory. The first chunk is waited for: storage that cannot answer is then still a proper refusal. A failure later
 * breaks the connection off, so that nobody takes half a list for a whole one.
 */
export async function streamJson(
  { method, log }: { method: string; log: Log },
  [before, middle, after]: readonly [string, AsyncIterable<Uint8Array>, string],
): Promise<Response> {
  const chunks = middle[Symbol.asyncIterator]();
  const first = await chunks.next();
  const headers = { "content-type": "application/json;charset=utf-8" };
  // Elysia reads a body to its end to answer HEAD with its length.
  // Remove when it does not (1.4.30).
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
      log.warn("an answer broke off", { error: String(error) });
      throw error;
    } finally {
      await chunks.return?.();
    }
  }
  return new Response(streamOf(whole()), { headers });
}

/** Nothing is read ahead of the client. */
function streamOf(chunks: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
