/** Up to five milliseconds of work: flushes run between two slices. */
export const rowsPerSlice = 1000;

const encoder = new TextEncoder();

/** Encodes slices of JSON objects such that the chunks concatenate to one list, without the brackets. */
export async function* joinSlices(slices: AsyncIterable<string[]>): AsyncGenerator<Uint8Array> {
  let separator = "";
  for await (const slice of slices) {
    if (slice.length === 0) continue;
    yield encoder.encode(separator + slice.join(","));
    separator = ",";
  }
}

/** Encodes a report that is one piece of JSON; the parts before it are empty. */
export async function* encodeSlices(parts: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  for await (const part of parts) yield encoder.encode(part);
}
