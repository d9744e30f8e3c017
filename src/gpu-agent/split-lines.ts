/** Far more than a line about one GPU; bounds the memory for a tool that prints no line feed. */
const maxLineLength = 8192;

/**
 * Yields whole lines, without their `\n` or `\r\n`. Text after the last line feed is dropped: if a tool is killed in the
 * middle of a number, the shorter number looks valid.
 */
export async function* splitLines(bytes: ReadableStream<Uint8Array>): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let pending = "";
  for await (const chunk of bytes) {
    const lines = (pending + decoder.decode(chunk, { stream: true })).split("\n");
    pending = (lines.pop() ?? "").slice(0, maxLineLength);
    for (const line of lines) yield line.endsWith("\r") ? line.slice(0, -1) : line;
  }
}
