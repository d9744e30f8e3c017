import { describe, expect, test } from "bun:test";
import { createEventSplitter } from "../../../src/proxy/sse/event-splitter.ts";
import { createRandom, cutAtEveryByte, cutAtRandom } from "../../support/random.ts";

function eventsOf(pieces: Iterable<Uint8Array>): string[] {
  const splitter = createEventSplitter();
  const events: Uint8Array[] = [];
  for (const piece of pieces) events.push(...splitter.push(piece));
  return [...events, splitter.end()].map((event) => Buffer.from(event).toString());
}

const streams: [name: string, events: string[]][] = [
  ["events that end in LF", ["data: a\n\n", "data: b\n\n", ""]],
  ["events that end in CRLF", ["data: a\r\n\r\n", "data: b\r\n\r\n", ""]],
  ["comments and empty lines", [": hello\n\n", "\n", "\r\n", "event: e\ndata: a\n\n", ""]],
  ["an event without an empty line", ["data: a\n\n", "data: b\n"]],
  ["a CR inside a line", ["data: a\rb\n\n", "\rdata: c\n\n", ""]],
  ["nothing", [""]],
];

describe("event splitter", () => {
  test.each(streams)("splits %s, cut at every byte", (_, events) => {
    const bytes = Buffer.from(events.join(""));
    for (const pieces of cutAtEveryByte(bytes)) expect(eventsOf(pieces)).toEqual(events);
    expect(eventsOf(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(events);
  });

  test("neither loses nor adds a byte of 5,000 random streams", () => {
    for (let seed = 0; seed < 5000; seed++) {
      const random = createRandom(seed);
      const texts = ["data: a", "\n", "\n\n", "\r", "\r\n", "é"];
      const stream = Buffer.from(Array.from({ length: random.below(20) }, () => random.pick(texts)).join(""));
      expect(eventsOf(cutAtRandom(stream, random)).join("")).toBe(stream.toString());
    }
  });

  test("joins an event of 20 MB from small pieces in linear time", () => {
    const splitter = createEventSplitter();
    const piece = Buffer.alloc(1000, 0x61);
    const before = performance.now();
    for (let round = 0; round < 20_000; round++) expect(splitter.push(piece)).toBeEmpty();
    expect(splitter.push(Buffer.from("\n\n"))[0]).toHaveLength(20_000_002);
    expect(performance.now() - before).toBeLessThan(5000);
  });
});
