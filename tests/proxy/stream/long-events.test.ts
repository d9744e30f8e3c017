import { describe, expect, test } from "bun:test";
import { heapStats } from "bun:jsc";
import { kindOf } from "../../../src/proxy/stream/body-kind.ts";
import { Passage } from "../../../src/proxy/stream/passage.ts";
import { passTicks } from "../../support/event-loop.ts";
import { createRandom, cutAtRandom } from "../../support/random.ts";
import { passEvents, utf8 } from "./start-meter.ts";

const kilobyte = 1024;
const maxHeldEventBytes = 64 * kilobyte;

const senders: [name: string, create: () => Passage][] = [
  ["an event stream of which no usage is hidden", () => passEvents()],
  [
    "an event stream of which usage in every chunk is hidden",
    () => passEvents({ includeUsage: true, continuousUsage: true }),
  ],
];
const holders: typeof senders = [
  ...senders,
  ["lines of JSON", () => new Passage(kindOf("application/x-ndjson", null), { listener: {} })],
];

/** The memory that each of `count` keeps after it was given `chunks`, which nobody else keeps. */
async function bytesKept(create: () => Passage, chunks: () => Iterable<Uint8Array>, count = 64): Promise<number> {
  const all = Array.from({ length: count }, () => create());
  const before = await memoryInUse();
  for (const passage of all) for (const chunk of chunks()) passage.push(chunk);
  const kept = (await memoryInUse()) - before;
  // The calls keep all of them alive until here.
  return kept / all.map((passage) => passage.push(new Uint8Array())).length;
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
    const passage = create();
    let owed = 0;
    let most = 0;
    for (const piece of cutAtRandom(stream, createRandom(seed))) {
      owed += piece.length - passage.push(piece).length;
      most = Math.max(most, owed);
    }
    expect(most).toBeWithin(0, maxHeldEventBytes + 1);
  }
});
