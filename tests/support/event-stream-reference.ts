/**
 * The data of the events of a complete event stream, by a slow and simple reading of the WHATWG HTML standard, section
 * 9.2.6. Unlike there, an event that the end of the stream cuts off is dispatched.
 */
export function eventDataOf(stream: Uint8Array): string[] {
  const text = new TextDecoder("utf-8").decode(stream);
  const events: string[] = [];
  let data: string[] = [];
  // The added empty line stands for the end of the stream.
  for (const line of [...text.split(/\r\n|\r|\n/), ""]) {
    if (line === "") {
      if (data.length > 0) events.push(data.join("\n"));
      data = [];
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1);
    if (field === "data") data.push(value.startsWith(" ") ? value.slice(1) : value);
  }
  return events;
}
