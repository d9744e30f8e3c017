import { describe, expect, test } from "bun:test";
import { heapStats } from "bun:jsc";
import type { UsageAdded } from "../../../src/proxy/rewrite/requested-stream.ts";
import { Passage } from "../../../src/proxy/stream/passage.ts";
import { passTicks } from "../../support/event-loop.ts";
import { createRandom, cutAtRandom } from "../../support/random.ts";
import { five, passEvents, startMeter, usageEvent, utf8 } from "./start-meter.ts";

const kilobyte = 1024;
const maxHeldEventBytes = 64 * kilobyte;
const nothing = new Uint8Array();

/** What holds the bytes of an unfinished event, by setting. */
const meters: [name: string, added: UsageAdded][] = [
  ["no usage is hidden", { includeUsage: false, continuousUsage: false }],
  ["the usage at the end is hidden", { includeUsage: true, continuousUsage: false }],
  ["usage in every chunk is hidden", { includeUsage: true, continuousUsage: true }],
];

describe("an event of 40 MiB without its empty line", () => {
  const piece = utf8.encode("x".repeat(16 * kilobyte));
  const count = (40 * kilobyte) / 16;
  const chunks = function* (): Generator<Uint8Array> {
    yield utf8.encode('data: {"choices":[{"index":0,"delta":{"content":"');
    for (let sent = 0; sent < count; sent++) yield piece;
    yield utf8.encode('"},"finish_reason":"stop"}]}');
    yield utf8.encode("\n\n");
    yield usageEvent;
    yield utf8.encode("data: [DONE]\n\n");
  };

  test.each(meters)("waits for its client, and no more than 64 KiB of it are held, if %s", async (_, added) => {
    const { meter, writer, finishes } = startMeter({ passage: passEvents(added) });
    let taken = 0;
    const writing = (async () => {
      for (const chunk of chunks()) {
        await writer.write(chunk);
        taken += chunk.length;
      }
      await writer.close();
    })();
    await passTicks(100);
    // The chunk that crosses the bound, and those in the meter's two queues.
    const mostHeld = maxHeldEventBytes + 4 * piece.length;
    expect(taken).toBeWithin(1, mostHeld + 1);
    let received = 0;
    let held = taken;
    for await (const bytes of meter.readable) {
      received += bytes.length;
      held = Math.max(held, taken - received);
    }
    await writing;
    expect(held).toBeLessThanOrEqual(mostHeld);
    expect(received).toBe(taken - (added.includeUsage ? usageEvent.length : 0));
    expect(finishes).toEqual([{ usage: five, cause: undefined }]);
  });
});

/** What holds bytes of an event: a function of what arrives, with what may be sent as its value. */
type Create<Output> = () => (chunk: Uint8Array) => Output;
// What is hidden in every chunk is held as what is hidden at the end is.
const senders: [name: string, create: Create<Uint8Array>][] = meters.toSpliced(1, 1).map(([name, added]) => [
  `an event stream of which ${name}`,
  () => {
    const passage = passEvents(added);
    return (chunk) => passage.push(chunk);
  },
]);
const readerOf = (contentType: string, contentEncoding: string | null): Create<unknown> => {
  return () => {
    const passage = new Passage({ contentType, contentEncoding }, { listener: {} });
    return (chunk) => passage.push(chunk);
  };
};
const holders: [name: string, create: Create<unknown>][] = [
  ...senders,
  ["lines of JSON", readerOf("application/x-ndjson", null)],
];

/** The memory that each of `count` keeps after it was given `chunks`, which nobody else keeps. */
async function bytesKept(create: Create<unknown>, chunks: () => Iterable<Uint8Array>, count = 64): Promise<number> {
  const all = Array.from({ length: count }, create);
  const before = await memoryInUse();
  for (const push of all) for (const chunk of chunks()) push(chunk);
  const kept = (await memoryInUse()) - before;
  // The calls keep all of them alive until here.
  return kept / all.map((push) => push(nothing)).length;
}

async function memoryInUse(): Promise<number> {
  await passTicks();
  Bun.gc(true);
  return heapStats().heapSize;
}

describe.each(holders)("%s", (_, create) => {
  const megabyte = kilobyte * kilobyte;
  const ended = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';

  test("keeps no chunk for the few bytes of an unfinished event at its end", async () => {
    const chunk = (): Uint8Array => Buffer.from(`data: ${"x".repeat(megabyte)}\n\n${ended}data: {"a":"b`);
    expect(await bytesKept(create, () => [chunk()])).toBeLessThan(maxHeldEventBytes);
  });

  test("keeps little more than 64 KiB of an event that arrives byte by byte", async () => {
    const chunks = function* (): Generator<Uint8Array> {
      yield utf8.encode('data: {"');
      for (let sent = 0; sent < 60_000; sent++) yield Uint8Array.of(0x61);
    };
    expect(await bytesKept(create, chunks, 8)).toBeLessThan(2 * maxHeldEventBytes);
  });

  test("keeps no more than 64 KiB of a chunk that is part of one event", async () => {
    const chunks = () => [utf8.encode('data: {"'), new Uint8Array(megabyte).fill(0x61)];
    expect(await bytesKept(create, chunks)).toBeLessThan(2 * maxHeldEventBytes);
  });

  test("keeps no chunk of which it holds the end of a choice", async () => {
    const chunk = (): Uint8Array => Buffer.from(`data: ${"x".repeat(megabyte)}\n\n${ended}`);
    expect(await bytesKept(create, () => [chunk()])).toBeLessThan(maxHeldEventBytes);
  });
});

test.each(senders)("%s never owes more than 64 KiB", (_, create) => {
  const long = `data: {"choices":[{"delta":{"content":"${"x".repeat(200_000)}"}}]}\n\n`;
  const stream = utf8.encode(`${long}data: a\r\n\r\n: b\n\n${long}data: [DONE`);
  for (let seed = 0; seed < 5; seed++) {
    const push = create();
    let owed = 0;
    let most = 0;
    for (const piece of cutAtRandom(stream, createRandom(seed))) {
      owed += piece.length - push(piece).length;
      most = Math.max(most, owed);
    }
    expect(most).toBeWithin(0, maxHeldEventBytes + 1);
  }
});
