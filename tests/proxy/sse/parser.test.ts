import { describe, expect, test } from "bun:test";
import { createEventStreamParser } from "../../../src/proxy/sse/parser.ts";
import { eventDataOf } from "../../support/event-stream-reference.ts";
import { createRandom, cutAtEveryByte, cutAtRandom, type Random } from "../../support/random.ts";

const utf8 = new TextEncoder();

function dataOf(pieces: Iterable<Uint8Array>): string[] {
  const events: string[] = [];
  let data: Uint8Array[] = [];
  const parser = createEventStreamParser({
    data: (piece) => void data.push(piece),
    dispatch() {
      events.push(new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.concat(data)));
      data = [];
    },
  });
  for (const piece of pieces) parser.push(piece);
  parser.end();
  return events;
}

const streams: [name: string, stream: string, data: string[]][] = [
  ["lines that end in LF", "data: a\n\ndata: b\n\n", ["a", "b"]],
  ["lines that end in CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]],
  ["lines that end in CR", "data: a\r\rdata: b\r\r", ["a", "b"]],
  ["line ends of all kinds in one stream", "data: a\r\n\ndata: b\n\rdata: c\r\r\n", ["a", "b", "c"]],
  ["a byte order mark at the start", "\uFEFFdata: a\n\n", ["a"]],
  ["a second byte order mark, which is part of a name", "\uFEFF\uFEFFdata: a\n\ndata: b\n\n", ["b"]],
  ["comments between and inside events", ": hello\n\ndata: a\n:\ndata: b\n\n:\n\n", ["a\nb"]],
  ["no space after the colon", "data:a\n\n", ["a"]],
  ["two spaces after the colon, of which one is data", "data:  a\n\n", [" a"]],
  ["data in several lines", "data: a\ndata:\ndata: b\n\n", ["a\n\nb"]],
  ["data without a colon", "data\ndata\n\ndata\n\n", ["\n", ""]],
  ["no empty line at the end", "data: a\n\ndata: b\n", ["a", "b"]],
  ["no line end at the end", "data: a\n\ndata: b", ["a", "b"]],
  ["other fields around the data", "event: message_stop\nid: 7\ndata: a\nretry: 10\n\n", ["a"]],
  ["fields whose names resemble data", "dat: a\ndatax: b\nDATA: c\n data: d\n\n", []],
  ["an event without data", "event: ping\n\ndata: a\n\n", ["a"]],
  ["three empty lines between events", "data: a\n\n\n\ndata: b\n\n\n", ["a", "b"]],
  ["text outside ASCII", "data: 안녕 🌊\n\n", ["안녕 🌊"]],
  ["a colon in the data", "data: a: b\n\n", ["a: b"]],
  ["nothing", "", []],
];

describe("event stream parser", () => {
  test.each(streams)("reads %s, cut at every byte", (_, stream, data) => {
    const bytes = utf8.encode(stream);
    expect(eventDataOf(bytes)).toEqual(data);
    for (const pieces of cutAtEveryByte(bytes)) expect(dataOf(pieces)).toEqual(data);
    expect(dataOf(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(data);
  });

  test("ignores half a byte order mark", () => {
    const bytes = Uint8Array.of(0xef, 0xbb, ...utf8.encode("data: a\n\ndata: b\n\n"));
    for (const pieces of cutAtEveryByte(bytes)) expect(dataOf(pieces)).toEqual(["b"]);
  });

  test("is between events only after an empty line", () => {
    const parser = createEventStreamParser({ data() {}, dispatch() {} });
    const states = ["data: a", "\n", "\n", ":", "\n\n", "data: b\r\n\r", "\n"].map((text) => {
      parser.push(utf8.encode(text));
      return parser.isBetweenEvents();
    });
    expect(states).toEqual([false, false, true, false, true, false, true]);
  });

  test("reads an event of 20 MB in small pieces in linear time", () => {
    const line = Buffer.concat([Buffer.from("data: "), Buffer.alloc(20_000_000, 0x61), Buffer.from("\n\n")]);
    let length = 0;
    let events = 0;
    const parser = createEventStreamParser({
      data: (piece) => void (length += piece.length),
      dispatch: () => events++,
    });
    const before = performance.now();
    for (let at = 0; at < line.length; at += 1000) parser.push(line.subarray(at, at + 1000));
    // Takes 0.01 s; quadratic time would be minutes.
    expect(performance.now() - before).toBeLessThan(5000);
    expect([length, events]).toEqual([20_000_000, 1]);
  });

  test("agrees with a simple reference on 100,000 random streams", () => {
    const seed = Number(process.env.FUZZ_SEED ?? 1);
    for (let round = 0; round < 100_000; round++) {
      const random = createRandom(seed * 1_000_003 + round);
      const stream = randomStream(random);
      const expected = eventDataOf(stream);
      const actual = dataOf(cutAtRandom(stream, random));
      if (!Bun.deepEquals(actual, expected)) {
        throw new Error(`seed ${seed}, round ${round}: ${JSON.stringify({ stream: [...stream], expected, actual })}`);
      }
    }
  });
});

const fields = ["data", "data:", "data: ", "data: x", "data:{}", ":", ": comment", "event: e", "retry: 5", "dat", " "];
const lineEnds = ["\n", "\n", "\n\n", "\r", "\r\n", "\r\n\r\n"];
const fragments = [...fields, ...lineEnds, "\uFEFF", "é", "🌊"].map((fragment) => utf8.encode(fragment));

function randomStream(random: Random): Uint8Array {
  return Buffer.concat(Array.from({ length: random.below(20) }, () => random.pick(fragments)));
}
