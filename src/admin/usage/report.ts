/** A report of the store that is short enough to be held whole. */
export async function readReport<Body>(chunks: AsyncIterable<Uint8Array>): Promise<Body> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of chunks) text += decoder.decode(chunk, { stream: true });
  return JSON.parse(text) as Body;
}
