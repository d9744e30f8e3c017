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
