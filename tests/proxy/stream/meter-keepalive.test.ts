import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { passTicks } from "../../support/event-loop.ts";
import { readAll, readText, type StartedMeter, startMeter, text, write } from "./start-meter.ts";

const comment = ": keepalive\n\n";
const long = `data: ${"x".repeat(64 * 1024)}`;

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

describe("a meter that keeps a client alive", () => {
  test("sends another heartbeat once the event that begins the stream has passed, whole", async () => {
    const [before, after] = [{ heartbeat: ": early\n\n" }, { heartbeat: "data: late\n\n" }];
    const heartbeats = { begins: "response.created", before, after };
    const { meter, writer } = startMeter({ keepaliveMs: 10, heartbeats });
    const reader = meter.readable.getReader();
    for (const [chunk, sent] of [
      [": theirs\n\n", ": theirs\n\n"],
      ["event: response.created\nda", ""],
    ] as const) {
      write(writer, chunk);
      await passTicks();
      if (sent !== "") expect(await readText(reader)).toBe(sent);
      jest.advanceTimersByTime(10);
      expect(await readText(reader)).toBe(": early\n\n");
      expect(meter.hasBegun).toBe(false);
    }
    write(writer, "ta: {}\n\n");
    expect(await readText(reader)).toBe("event: response.created\ndata: {}\n\n");
    jest.advanceTimersByTime(10);
    expect(await readText(reader)).toBe("data: late\n\n");
    expect(meter.hasBegun).toBe(true);
    await reader.cancel();
  });

  test.each(["", "\r", "\r\n:", "\n"])("never sends a comment in a long event after %j", async (begun) => {
    const half = long + begun;
    const { meter, writer } = startMeter({ keepaliveMs: 2 });
    const reader = meter.readable.getReader();
    write(writer, half);
    let received = await readText(reader);
    const next = readText(reader);
    jest.advanceTimersByTime(30);
    write(writer, "\n\n");
    received += await next;
    expect(received).toBe(`${half}\n\n`);
    await reader.cancel();
  });

  test("sends one comment to a client that does not read, not one for every silence", async () => {
    const { meter, writer } = startMeter({ keepaliveMs: 2 });
    jest.advanceTimersByTime(60);
    void writer.close();
    expect(await readAll(meter.readable)).toBe(comment);
  });

  test("sends none as long as bytes come", async () => {
    const { meter, writer } = startMeter({ keepaliveMs: 100 });
    const reader = meter.readable.getReader();
    for (let round = 0; round < 20; round++) {
      write(writer, "data: a\n\n");
      expect(await readText(reader)).toBe("data: a\n\n");
      jest.advanceTimersByTime(99);
    }
    await reader.cancel();
  });

  test("leaves a byte order mark at the start", async () => {
    const { meter, writer } = startMeter({ keepaliveMs: 1000 });
    write(writer, "\uFEFFdata: a\n\n");
    void writer.close();
    expect(await readAll(meter.readable)).toBe("\uFEFFdata: a\n\n");
  });

  test("drops a byte order mark that follows a comment", async () => {
    const { meter, writer } = startMeter({ keepaliveMs: 10 });
    const reader = meter.readable.getReader();
    jest.advanceTimersByTime(10);
    expect(await readText(reader)).toBe(comment);
    write(writer, "\uFEFFdata: a\n\n");
    write(writer, "\uFEFFdata: b\n\n");
    expect(await readText(reader)).toBe("data: a\n\n");
    expect(await readText(reader)).toBe("\uFEFFdata: b\n\n");
    await reader.cancel();
  });

  test.each([
    ["in two chunks", [[0xef], [0xbb, 0xbf]]],
    [
      "with a comment between its bytes and the end of its event",
      [
        [0xef, 0xbb],
        [0xbf, 0x64],
      ],
    ],
  ])("drops a byte order mark that follows a comment and comes %s", async (_, pieces) => {
    const { meter, writer } = startMeter({ keepaliveMs: 10 });
    const reader = meter.readable.getReader();
    const received: string[] = [];
    for (const piece of pieces) {
      write(writer, Uint8Array.from(piece));
      await passTicks();
      jest.advanceTimersByTime(10);
      received.push(await readText(reader));
    }
    write(writer, "data: a\n\n\uFEFFdata: b\n\n");
    received.push(await readText(reader));
    const rest = text.decode(Uint8Array.from(pieces.flat().slice(3)));
    expect(received).toEqual([comment, comment, `${rest}data: a\n\n\uFEFFdata: b\n\n`]);
    await reader.cancel();
  });

  test("leaves no timer behind, however the response ends", async () => {
    const endings: ((started: StartedMeter) => Promise<unknown>)[] = [
      ({ meter }) => meter.readable.cancel(),
      ({ writer }) => writer.abort("broken"),
      ({ meter, writer }) => Promise.all([writer.close(), readAll(meter.readable)]),
    ];
    for (const end of endings) {
      await end(startMeter({ keepaliveMs: 5 }));
      expect(jest.getTimerCount()).toBe(0);
    }
  });
});
