import { describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import type { Usage } from "../../../src/domain/usage.ts";
import { Passage } from "../../../src/proxy/stream/passage.ts";
import { recordedResponses } from "../../fixtures/recorded-responses.ts";
import { usageServers } from "../../fixtures/usage-servers.ts";
import { passTicks } from "../../support/event-loop.ts";
import { createRandom, cutAtRandom, type Random } from "../../support/random.ts";
import { five, passEvents, readAll, startMeter, usageEvent, utf8, write } from "./start-meter.ts";

/** Whole events, one or several at a time, and now and then a piece of one. */
function cutAtEvents(bytes: Uint8Array, random: Random): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    let end = at;
    for (let count = 1 + random.below(3); count > 0 && end >= 0; count--)
      end = Buffer.from(bytes).indexOf("\n\n", end + 2);
    const whole = end < 0 ? bytes.length : end + 2;
    const next = random.below(4) === 0 ? at + 1 + random.below(whole - at) : whole;
    pieces.push(bytes.slice(at, next));
    at = next;
  }
  return pieces;
}

/** What a client gets of an event stream before its usage is committed, what it gets in all, and what is counted. */
async function passHeld(pieces: readonly Uint8Array[], hasFilter: boolean) {
  const commits: { usage: Usage; sent: string }[] = [];
  let sent = "";
  const { meter, writer, finishes } = startMeter({
    passage: passEvents({ includeUsage: hasFilter, continuousUsage: false }),
    async commit(usage) {
      await passTicks();
      // The LF of a CRLF may come with the next piece.
      commits.push({ usage, sent: sent.trimEnd() });
    },
  });
  for (const piece of pieces) write(writer, piece);
  void writer.close();
  for await (const chunk of meter.readable) sent += Buffer.from(chunk).toString("latin1");
  return { sent, commits, finishes };
}

describe("the meter", () => {
  test.each(recordedResponses)("passes every byte on and counts: $server", async ({ contentType, body, usage }) => {
    for (let seed = 0; seed < 20; seed++) {
      const { meter, writer, finishes } = startMeter({
        passage: new Passage({ contentType, contentEncoding: null }, { listener: {} }),
      });
      for (const piece of cutAtRandom(utf8.encode(body), createRandom(seed))) write(writer, piece);
      void writer.close();
      expect(await readAll(meter.readable)).toBe(body);
      expect(finishes).toEqual([{ usage, cause: undefined }]);
    }
  });

  test.each([
    ...recordedResponses
      .filter(({ contentType }) => contentType.startsWith("text/event-stream"))
      .map(({ server, body }) => ({ server, body, hasFilter: false })),
    ...usageServers.flatMap(({ server, stream }) =>
      [false, true].map((hasFilter) => ({ server, body: stream({ include: true, continuous: false }), hasFilter })),
    ),
  ])("sends and counts the same, whether events come whole or in pieces: $server, $hasFilter", async (row) => {
    const bytes = utf8.encode(row.body);
    const expected = await passHeld(
      Array.from(bytes, (byte) => Uint8Array.of(byte)),
      row.hasFilter,
    );
    for (let seed = 0; seed < 30; seed++) {
      expect(await passHeld(cutAtEvents(bytes, createRandom(seed)), row.hasFilter)).toEqual(expected);
    }
  });

  test("lets the client see the end only once the usage is committed", async () => {
    const committed = Promise.withResolvers<void>();
    const { meter, writer } = startMeter({ finish: () => committed.promise });
    const reader = meter.readable.getReader();
    write(writer, usageEvent);
    void writer.close();
    await reader.read();
    let ended = false;
    const end = reader.read().then(({ done }) => (ended = done));
    await passTicks();
    expect(ended).toBe(false);
    committed.resolve();
    expect(await end).toBe(true);
  });

  test("finishes once with the usage so far when the client leaves", async () => {
    const { meter, writer, finishes } = startMeter();
    const reader = meter.readable.getReader();
    write(writer, usageEvent);
    await reader.read();
    await reader.cancel("gone");
    expect(finishes).toEqual([{ usage: five, cause: "gone" }]);
    expect(writer.closed).rejects.toBe("gone");
  });

  test("finishes with a cause of its own when the client leaves without naming one", async () => {
    const { meter, finishes } = startMeter();
    await meter.readable.cancel();
    expect(finishes).toHaveLength(1);
    expect(finishes[0]?.cause).toHaveProperty("name", "AbortError");
  });

  test("finishes once with the usage so far when the upstream breaks", async () => {
    const { meter, writer, finishes } = startMeter();
    const reader = meter.readable.getReader();
    write(writer, usageEvent);
    await reader.read();
    await writer.abort("broken");
    expect(reader.read()).rejects.toBe("broken");
    expect(finishes).toEqual([{ usage: five, cause: "broken" }]);
  });

  test("finishes once when the client leaves while the end is being committed", async () => {
    const committed = Promise.withResolvers<void>();
    const causes: unknown[] = [];
    const { meter, writer } = startMeter({
      finish(_, cause) {
        causes.push(cause);
        return committed.promise;
      },
    });
    const reader = meter.readable.getReader();
    write(writer, usageEvent);
    writer.close().catch(() => {});
    await reader.read();
    await passTicks();
    const cancelled = reader.cancel("gone");
    committed.resolve();
    await cancelled;
    expect(causes).toEqual([undefined]);
  });

  test("finishes the usage of a compressed stream and leaves its bytes as they are", async () => {
    const { meter, writer, finishes } = startMeter({
      passage: new Passage({ contentType: "text/event-stream", contentEncoding: "gzip" }, { listener: {} }),
    });
    const bytes = gzipSync(usageEvent);
    for (const byte of bytes) write(writer, Uint8Array.of(byte));
    void writer.close();
    expect(await new Response(meter.readable).bytes()).toEqual(new Uint8Array(bytes));
    expect(finishes).toEqual([{ usage: five, cause: undefined }]);
  });

  test("counts what its filter takes out, and sends at the end what the filter held", async () => {
    const passage = passEvents({ includeUsage: true, continuousUsage: false });
    const { meter, writer, finishes } = startMeter({ passage });
    const last = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n';
    write(writer, last);
    write(writer, usageEvent);
    write(writer, last);
    void writer.close();
    expect(await readAll(meter.readable)).toBe(last + last);
    expect(finishes).toEqual([{ usage: five, cause: undefined }]);
  });

  test("takes no more than a few chunks ahead of a client that does not read", async () => {
    const { meter, writer } = startMeter();
    writer.releaseLock();
    let pulled = 0;
    const source = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled++;
        controller.enqueue(new Uint8Array(65_536));
      },
    });
    const piped = source.pipeTo(meter.writable).catch((error: unknown) => error);
    const reader = meter.readable.getReader();
    await reader.read();
    await passTicks();
    expect(pulled).toBeLessThan(8);
    await reader.cancel("gone");
    expect(await piped).toBe("gone");
  });
});
