import { describe, expect, test } from "bun:test";
import { Events, dataOf, type Position } from "../../../src/proxy/stream/events.ts";
import { eventDataOf } from "../../support/event-stream-reference.ts";
import { createRandom, cutAtEveryByte, cutAtRandom, type Random } from "../../support/random.ts";
import { threadMs } from "../../support/processor-time.ts";

/** What comes out; the pieces of a long event are joined. */
function startEvents(takesRuns = false) {
  const out: Buffer[] = [];
  let long: Uint8Array[] = [];
  const events = new Events({
    run(bytes) {
      if (takesRuns) out.push(Buffer.from(bytes));
      return takesRuns;
    },
    event: (bytes) => void out.push(Buffer.from(bytes)),
    piece(bytes, isLast) {
      long.push(Buffer.from(bytes));
      if (!isLast) return;
      out.push(Buffer.concat(long));
      long = [];
    },
  });
  return { events, out };
}

/** The events and the rest. */
function eventsOf(pieces: Iterable<Uint8Array>): string[] {
  const { events, out } = startEvents();
  for (const piece of pieces) events.push(piece);
  return [...out, events.rest()].map((event) => Buffer.from(event).toString());
}

const bytesOf = (text: string): Uint8Array => Buffer.from(text);
const eachByte = (bytes: Uint8Array): Uint8Array[] => Array.from(bytes, (byte) => Uint8Array.of(byte));

const streams: [name: string, events: string[]][] = [
  ["events that end in LF", ["data: a\n\n", "data: b\n\n", ""]],
  ["events that end in CRLF", ["data: a\r\n\r\n", "data: b\r\n\r\n", ""]],
  ["events that end in CR", ["data: a\r\r", "data: b\r\r", "data: c"]],
  ["comments and empty lines", [": hello\n", "\r\n", "event: e\ndata: a\n\n", ""]],
  ["comment lines before an event and inside one", [":\n", ": a\r\n", "data: a\n:\n: b\n\n", ": c"]],
  ["an event without an empty line", ["data: a\n\n", "data: b\n"]],
  ["a CR at the end of a line", ["data: a\rb\n\n", "data: c\n\n", ""]],
  ["a byte order mark", ["\uFEFFdata: a\n\n", ""]],
  ["nothing", [""]],
];

const positions: [stream: string, position: Position][] = [
  ["", "between events"],
  ["data: a\n\n", "between events"],
  ["data: a\r\n\r\n", "between events"],
  ["data: a\r\r", "between events"],
  // It is held.
  ["data: a", "between events"],
  ["LONG\n\n", "between events"],
  ["LONG\r\n\r\n", "between events"],
  ["LONG\n\r", "between events"],
  ["LONG\n", "between lines"],
  ["LONG\r\n", "between lines"],
  ["LONG\nevent: b\n", "between lines"],
  ["LONG", "inside a line"],
  ["LONG\nd", "inside a line"],
  // Its LF may still come.
  ["LONG\r", "inside a line"],
];

describe("the cutter of events", () => {
  test.each(streams)("splits %s, cut at every byte", (_, events) => {
    const bytes = Buffer.from(events.join(""));
    for (const pieces of cutAtEveryByte(bytes)) expect(eventsOf(pieces)).toEqual(events);
    expect(eventsOf(eachByte(bytes))).toEqual(events);
  });

  test("gives many empty lines in a chunk as one", () => {
    expect(eventsOf([bytesOf("data: a\n\n\n\n\ndata: b\n\n")])).toEqual(["data: a\n\n", "\n\n\n", "data: b\n\n", ""]);
  });

  test("offers a chunk that is whole events as a run, and nothing else", () => {
    const { events, out } = startEvents(true);
    const chunks = [
      "data: a\n\ndata: b\n\n",
      "da",
      "ta: c\n\n",
      ": d\r\n\r\n",
      "data: e\n",
      "\n",
      "data: f\r\r",
      "data: g\n\n",
    ];
    expect(chunks.map((chunk) => events.push(bytesOf(chunk)))).toEqual([
      true,
      false,
      false,
      true,
      false,
      false,
      false,
      true,
    ]);
    expect(out.join("")).toBe(chunks.join(""));
  });

  test("ends an event at its CR where lines end in CR, and at its LF where they end in CRLF", () => {
    const afterEach = (chunks: string[]): number[] => {
      const { events, out } = startEvents();
      return chunks.map((chunk) => (events.push(bytesOf(chunk)), out.length));
    };
    expect(afterEach(["data: a\r", "\r"])).toEqual([0, 1]);
    expect(afterEach(["data: a\r\n\r", "\n", "data: b\r\n\r", "data: c"])).toEqual([0, 1, 1, 2]);
  });

  test.each(positions)("the position after %j is %s", (stream, position) => {
    const long = `data: ${"x".repeat(64 * 1024)}`;
    const [begin, end] = stream.startsWith("LONG") ? [long, stream.slice(4)] : ["", stream];
    for (const pieces of cutAtEveryByte(bytesOf(end))) {
      const { events } = startEvents();
      for (const piece of [bytesOf(begin), ...pieces]) events.push(piece);
      expect(events.position()).toBe(position);
    }
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
    const events = new Events({
      run: () => false,
      event: ({ length }) => void passed.push(["event", length]),
      piece: ({ length }, isLast) => void passed.push([isLast ? "last" : "piece", length]),
    });
    const push = (text: string): typeof passed => {
      events.push(Buffer.from(text));
      return passed.splice(0);
    };
    const most = "x".repeat(64 * 1024);
    expect(push(most)).toEqual([]);
    expect(push("\n\n")).toEqual([["event", most.length + 2]]);
    expect(push(most)).toEqual([]);
    expect(push("y")).toEqual([["piece", most.length + 1]]);
    expect(push("z\n")).toEqual([["piece", 2]]);
    // What follows it is an empty line.
    expect(push("\r")).toEqual([["last", 1]]);
    expect(push("\ndata: a\n\ndata: b")).toEqual([
      ["event", 1],
      ["event", 9],
    ]);
    expect(Buffer.from(events.rest()).toString()).toBe("data: b");
  });

  test("neither loses nor adds a byte of long events, wherever they are cut", () => {
    const long = "x\r\ny".repeat(25_000);
    const events = ["data: a\n\n", `${long}\n\n`, ": b\r\n", "\r\n", `${long}\r\n\r\n`, "\n", `${long}c\n\n`, ""];
    const stream = Buffer.from(events.join(""));
    for (let seed = 0; seed < 5; seed++)
      expect(eventsOf(cutAtRandom(stream, createRandom(seed))).join("")).toBe(events.join(""));
  });

  test("passes an event of 20 MB in small pieces in linear time", () => {
    let length = 0;
    const add = (bytes: Uint8Array): void => void (length += bytes.length);
    const events = new Events({ run: () => false, event: add, piece: add });
    const piece = Buffer.alloc(1000, 0x61);
    const tookMs = threadMs(() => {
      for (let round = 0; round < 20_000; round++) events.push(piece);
      events.push(Buffer.from("\n\n"));
    });
    expect(length).toBe(20_000_002);
    expect(tookMs).toBeLessThan(5000);
  });
});

const datas: [name: string, stream: string, data: string[]][] = [
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

/** The data of the events that have some. */
const datasOf = (pieces: Iterable<Uint8Array>): string[] =>
  eventsOf(pieces).flatMap((event) => {
    const hasData = /^(?:\uFEFF)?data(?::|$)/m.test(event.replaceAll("\r", "\n"));
    return hasData ? [Buffer.from(dataOf(bytesOf(event))).toString()] : [];
  });

describe("the data of events", () => {
  test.each(datas)("is read from %s, cut at every byte", (_, stream, data) => {
    const bytes = bytesOf(stream);
    expect(eventDataOf(bytes)).toEqual(data);
    for (const pieces of cutAtEveryByte(bytes)) expect(datasOf(pieces)).toEqual(data);
    expect(datasOf(eachByte(bytes))).toEqual(data);
  });

  test("is nothing after half a byte order mark", () => {
    expect(dataOf(Uint8Array.of(0xef, 0xbb, ...bytesOf("data: a\n\n")))).toBeEmpty();
  });

  test("agrees with a simple reference on 50,000 random streams", () => {
    const seed = Number(process.env.FUZZ_SEED ?? 1);
    for (let round = 0; round < 50_000; round++) {
      const random = createRandom(seed * 1_000_003 + round);
      const stream = randomStream(random);
      const expected = eventDataOf(stream);
      const actual = datasOf(cutAtRandom(stream, random));
      if (!Bun.deepEquals(actual, expected))
        throw new Error(
          `seed ${seed}, round ${round}: ${JSON.stringify({ stream: stream.toString(), expected, actual })}`,
        );
    }
  });
});

const fields = ["data", "data:", "data: ", "data: x", "data:{}", ":", ": comment", "event: e", "retry: 5", "dat", " "];
const lineEnds = ["\n", "\n", "\n\n", "\r", "\r\n", "\r\n\r\n"];
const fragments = [...fields, ...lineEnds, "é", "🌊"].map((fragment) => Buffer.from(fragment));

function randomStream(random: Random): Buffer {
  const mark = random.pick([Buffer.of(), Buffer.from("\uFEFF")]);
  return Buffer.concat([
    mark,
    ...Array.from({ length: random.below(20) }, () => random.pick(fragments)),
    Buffer.from("\n"),
  ]);
}
