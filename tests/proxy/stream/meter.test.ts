import { describe, expect, test } from "bun:test";
import type { Usage } from "../../../src/domain/usage.ts";
import { recordedResponses } from "../../fixtures/recorded-responses.ts";
import { usageServers } from "../../fixtures/usage-servers.ts";
import { passTicks } from "../../support/event-loop.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { five, passEvents, readText, startMeter, text, usageEvent, utf8, write } from "./start-meter.ts";

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
});

describe("a meter that holds the terminal event", () => {
  const done = "data: [DONE]\n\n";

  test("sends it once the usage before it is committed, and the rest after it", async () => {
    const committed = Promise.withResolvers<void>();
    const commits: Usage[] = [];
    const { meter, writer, finishes } = startMeter({
      commit(usage) {
        commits.push(usage);
        return committed.promise;
      },
    });
    const reader = meter.readable.getReader();
    write(writer, Buffer.concat([utf8.encode("data: a\n\n"), usageEvent, utf8.encode(`${done}: bye\n\n`)]));
    expect(await readText(reader)).toBe(`data: a\n\n${text.decode(usageEvent)}`);
    let received = "";
    const next = readText(reader).then((piece) => (received = piece));
    await passTicks();
    expect([commits, received]).toEqual([[five], ""]);
    committed.resolve();
    expect(await next).toBe(`${done}: bye\n\n`);
    void writer.close();
    expect(await readText(reader)).toBe("(end)");
    expect(finishes).toEqual([{ usage: five, cause: undefined }]);
  });

  test("commits nothing early in a stream without one, and sends its unfinished end after how it finished", async () => {
    let commits = 0;
    const settled = Promise.withResolvers<void>();
    const { meter, writer } = startMeter({
      commit: async () => void commits++,
      finish: () => settled.promise,
    });
    const reader = meter.readable.getReader();
    write(writer, "data: a\n\ndata: [DONE]\n");
    void writer.close();
    expect(await readText(reader)).toBe("data: a\n\n");
    let received = "";
    const next = readText(reader).then((piece) => (received = piece));
    await passTicks();
    expect([commits, received]).toEqual([0, ""]);
    settled.resolve();
    expect(await next).toBe("data: [DONE]\n");
    expect(await readText(reader)).toBe("(end)");
  });
});
