/** A body whose first chunks were read already, from its start again. Nothing is read ahead of the consumer. */
export function resumedStream<Chunk extends Uint8Array>(
  first: Chunk[],
  reader: ReadableStreamDefaultReader<Chunk>,
): ReadableStream<Chunk> {
  return new ReadableStream(
    {
      async pull(controller) {
        const value = first.shift() ?? (await reader.read()).value;
        if (value === undefined) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
