import { describe, expect, test } from "bun:test";
import { createEventSplitter } from "../../../src/proxy/sse/events.ts";
import { createRandom, cutAtEveryByte, cutAtRandom } from "../../support/random.ts";

/** The events and the rest; the parts of a long event are joined. */
function eventsOf(pieces: Iterable<Uint8Array>): string[] {
  const events: Buffer[] = [];
  let long: Buffer[] = [];
  const endLong = (): void => {
    if (long.length > 0) events.push(Buffer.concat(long));
    long = [];
  };
  const splitter = createEventSplitter({
    event(bytes) {
      endLong();
      events.push(Buffer.from(bytes));
    },
    longEvent: (bytes) => void long.push(Buffer.from(bytes)),
  });
  for (const piece of pieces) splitter.push(piece);
  endLong();
  return [...events, splitter.end()].map((event) => Buffer.from(event).toString());
}

const streams: [name: string, events: string[]][] = [
  ["events that end in LF", ["data: a\n\n", "data: b\n\n", ""]],
  ["events that end in CRLF", ["data: a\r\n\r\n", "data: b\r\n\r\n", ""]],
  ["comments and empty lines", [": hello\n", "\n", "\n", "\r\n", "event: e\ndata: a\n\n", ""]],
  ["comment lines before an event and inside one", [":\n", ": a\r\n", "data: a\n:\n: b\n\n", ": c"]],
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

  test("holds an event of 64 KiB, and passes what is longer as it comes, up to its empty line", () => {
    const passed: [kind: string, length: number][] = [];
    const splitter = createEventSplitter({
      event: ({ length }) => void passed.push(["event", length]),
      longEvent: ({ length }) => void passed.push(["part", length]),
    });
    const push = (text: string): typeof passed => {
      splitter.push(Buffer.from(text));
      return passed.splice(0);
    };
    const most = "x".repeat(64 * 1024);
    expect(push(most)).toEqual([]);
    expect(push("\n\n")).toEqual([["event", most.length + 2]]);
    expect(push(most)).toEqual([]);
    expect(push("y")).toEqual([["part", most.length + 1]]);
    expect(push("z\n")).toEqual([["part", 2]]);
    expect(push("\r")).toEqual([["part", 1]]);
    expect(push("\ndata: a\n\ndata: b")).toEqual([
      ["part", 1],
      ["event", 9],
    ]);
    expect(Buffer.from(splitter.end()).toString()).toBe("data: b");
    // What arrives at once is not held.
    expect(push(`${most}${most}\n\n${most}z`)).toEqual([
      ["event", 2 * most.length + 2],
      ["part", most.length + 1],
    ]);
    expect(splitter.end()).toBeEmpty();
  });

  test("neither loses nor adds a byte of long events, wherever they are cut", () => {
    const long = "x\n\ry".repeat(25_000);
    const events = ["data: a\n\n", `${long}\n\n`, ": b\r\n", "\r\n", `${long}\r\n\r\n`, "\n", `${long}c\n\n`, ""];
    const stream = Buffer.from(events.join(""));
    for (let seed = 0; seed < 30; seed++) expect(eventsOf(cutAtRandom(stream, createRandom(seed)))).toEqual(events);
  });

  test("passes an event of 20 MB in small pieces in linear time", () => {
    let length = 0;
    const splitter = createEventSplitter({
      event: (bytes) => void (length += bytes.length),
      longEvent: (bytes) => void (length += bytes.length),
    });
    const piece = Buffer.alloc(1000, 0x61);
    const before = performance.now();
    for (let round = 0; round < 20_000; round++) splitter.push(piece);
    splitter.push(Buffer.from("\n\n"));
    expect(length).toBe(20_000_002);
    expect(performance.now() - before).toBeLessThan(5000);
  });
});
