/** Far more than a line about one GPU: a tool that prints without end must not fill the memory. */
const longestLine = 8192;

/**
 * Whole lines, without their `\n` or `\r\n`. What follows the last line feed is dropped: a tool that was killed in the
 * middle of a number leaves a smaller number, which nobody could tell from a right one.
 */
export async function* readLines(bytes: ReadableStream<Uint8Array>): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let pending = "";
  for await (const chunk of bytes) {
    const lines = (pending + decoder.decode(chunk, { stream: true })).split("\n");
    pending = (lines.pop() ?? "").slice(0, longestLine);
    for (const line of lines) yield line.endsWith("\r") ? line.slice(0, -1) : line;
  }
}
