import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { createEventHold } from "../../../src/proxy/response/event-hold.ts";
import { terminalEventsOf } from "../../../src/proxy/response/terminal-event.ts";
import { createMeter, type Meter, type MeterOptions } from "../../../src/proxy/response/meter.ts";
import { createStreamUsageFilter } from "../../../src/proxy/usage/stream-filter.ts";
import { createUsageReader } from "../../../src/proxy/usage/response-usage.ts";
import type { Usage } from "../../../src/domain.ts";
import { recordedResponses } from "../../fixtures/recorded-responses.ts";
import { passTicks } from "../../support/event-loop.ts";
import { createRandom, cutAtRandom } from "../../support/random.ts";

const utf8 = new TextEncoder();
const text = new TextDecoder("utf-8", { ignoreBOM: true });
const comment = ": keepalive\n\n";
const usageEvent = utf8.encode('data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\n');
const five: Usage = { inputTokens: 5, outputTokens: 2 };

interface Started {
  meter: Meter;
  writer: WritableStreamDefaultWriter<Uint8Array>;
  settlements: { usage: Usage; cause: unknown }[];
}

function start(options: Partial<MeterOptions> = {}): Started {
  const settlements: Started["settlements"] = [];
  const meter = createMeter({
    reader: createUsageReader({ contentType: "text/event-stream", contentEncoding: null }),
    keepaliveMs: 0,
    commit: async () => {},
    async settle(usage, cause) {
      settlements.push({ usage, cause });
    },
    ...options,
  });
  const writer = meter.writable.getWriter();
  // Each test looks at the readable side or at the settlement.
  writer.closed.catch(() => {});
  return { meter, writer, settlements };
}

function write(writer: Started["writer"], chunk: string | Uint8Array): void {
  writer.write(typeof chunk === "string" ? utf8.encode(chunk) : chunk).catch(() => {});
}

async function readText(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const { done, value } = await reader.read();
  return done ? "(end)" : text.decode(value);
}

async function readAll(stream: ReadableStream<Uint8Array>): Promise<string> {
  return text.decode(await new Response(stream).bytes());
}

afterEach(() => void jest.useRealTimers());

describe("the meter", () => {
  test.each(recordedResponses)("passes every byte on and counts: $server", async ({ contentType, body, usage }) => {
    for (let seed = 0; seed < 20; seed++) {
      const { meter, writer, settlements } = start({
        reader: createUsageReader({ contentType, contentEncoding: null }),
      });
      for (const piece of cutAtRandom(utf8.encode(body), createRandom(seed))) write(writer, piece);
      void writer.close();
      expect(await readAll(meter.readable)).toBe(body);
      expect(settlements).toEqual([{ usage, cause: undefined }]);
    }
  });

  test("lets the client see the end only once the usage is settled", async () => {
    const committed = Promise.withResolvers<void>();
    const { meter, writer } = start({ settle: () => committed.promise });
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

  test("settles once with the usage so far when the client leaves", async () => {
    const { meter, writer, settlements } = start();
    const reader = meter.readable.getReader();
    write(writer, usageEvent);
    await reader.read();
    await reader.cancel("gone");
    expect(settlements).toEqual([{ usage: five, cause: "gone" }]);
    expect(writer.closed).rejects.toBe("gone");
  });

  test("settles with a cause of its own when the client leaves without naming one", async () => {
    const { meter, settlements } = start();
    await meter.readable.cancel();
    expect(settlements).toHaveLength(1);
    expect(settlements[0]?.cause).toHaveProperty("name", "AbortError");
  });

  test("settles once with the usage so far when the upstream breaks", async () => {
    const { meter, writer, settlements } = start();
    const reader = meter.readable.getReader();
    write(writer, usageEvent);
    await reader.read();
    await writer.abort("broken");
    expect(reader.read()).rejects.toBe("broken");
    expect(settlements).toEqual([{ usage: five, cause: "broken" }]);
  });

  test("settles once when the client leaves while the end is being settled", async () => {
    const committed = Promise.withResolvers<void>();
    const causes: unknown[] = [];
    const { meter, writer } = start({
      settle(_, cause) {
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

  test("settles the usage of a compressed stream and leaves its bytes as they are", async () => {
    const { meter, writer, settlements } = start({
      reader: createUsageReader({ contentType: "text/event-stream", contentEncoding: "gzip" }),
    });
    const bytes = gzipSync(usageEvent);
    for (const byte of bytes) write(writer, Uint8Array.of(byte));
    void writer.close();
    expect(await new Response(meter.readable).bytes()).toEqual(new Uint8Array(bytes));
    expect(settlements).toEqual([{ usage: five, cause: undefined }]);
  });

  test("counts what its filter takes out, and sends at the end what the filter held", async () => {
    const filter = createStreamUsageFilter({ includeUsage: true, continuousUsage: false });
    const { meter, writer, settlements } = start({ filter });
    const last = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n';
    write(writer, last);
    write(writer, usageEvent);
    write(writer, last);
    void writer.close();
    expect(await readAll(meter.readable)).toBe(last + last);
    expect(settlements).toEqual([{ usage: five, cause: undefined }]);
  });

  test("takes no more than a few chunks ahead of a client that does not read", async () => {
    const { meter, writer } = start();
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

describe("a meter that fails", () => {
  const frame = utf8.encode('data: {"error":{}}\n\n');
  const frameText = text.decode(frame);

  test.each([
    ["between events", ["data: a\n\n"], `data: a\n\n${frameText}`],
    ["between the lines of an event", ["event: a\n"], `event: a\n\n${frameText}`],
    ["inside a line", ["data: a\n\ndata: {"], `data: a\n\ndata: {\n\n${frameText}`],
    ["after a CR", ["data: a\r"], `data: a\r\n\n${frameText}`],
  ])("%s puts its frame on a line of its own", async (_, chunks, expected) => {
    const { meter, writer, settlements } = start();
    const reader = meter.readable.getReader();
    let received = "";
    for (const chunk of chunks) {
      write(writer, chunk);
      received += await readText(reader);
    }
    meter.fail(frame);
    received += await readText(reader);
    expect(received).toBe(expected);
    await writer.abort("broken");
    expect(reader.read()).rejects.toBe("broken");
    expect(settlements).toHaveLength(1);
    expect(settlements[0]?.cause).toBe("broken");
  });

  test("before any byte sends nothing: the caller still has a whole response to give", async () => {
    const { meter, writer } = start();
    meter.fail(frame);
    expect(meter.hasSent()).toBe(false);
    await writer.abort("broken");
    expect(meter.started).rejects.toBe("broken");
  });

  test("sends nothing after the frame, and the frame once", async () => {
    jest.useFakeTimers();
    const { meter, writer } = start({ keepaliveMs: 5 });
    write(writer, "data: a\n\n");
    await meter.started;
    meter.fail(frame);
    meter.fail(frame);
    write(writer, "data: late\n\n");
    void writer.close();
    jest.advanceTimersByTime(20);
    expect(await readAll(meter.readable)).toBe(`data: a\n\n${frameText}`);
  });

  test("sends no frame if there is none to send, nor once the response is settled", async () => {
    const broken = start();
    broken.meter.fail(undefined);
    await broken.writer.abort("broken");
    expect(broken.meter.readable.getReader().read()).rejects.toBe("broken");

    const left = start();
    await left.meter.readable.cancel("gone");
    left.meter.fail(frame);
    expect(left.settlements).toHaveLength(1);
  });

  test("drops an unfinished event that was held", async () => {
    const { meter, writer } = start({ hold: createEventHold(terminalEventsOf("/v1/chat/completions")) });
    const reader = meter.readable.getReader();
    write(writer, 'data: a\n\ndata: {"cho');
    expect(await readText(reader)).toBe("data: a\n\n");
    meter.fail(frame);
    expect(await readText(reader)).toBe(frameText);
    await writer.abort("broken");
    expect(reader.read()).rejects.toBe("broken");
  });

  test("sends no frame after the terminal event", async () => {
    const { meter, writer } = start({ hold: createEventHold(terminalEventsOf("/v1/chat/completions")) });
    const reader = meter.readable.getReader();
    write(writer, "data: a\n\ndata: [DONE]\n\n");
    expect(await readText(reader)).toBe("data: a\n\n");
    expect(await readText(reader)).toBe("data: [DONE]\n\n");
    meter.fail(frame);
    await writer.abort("broken");
    expect(reader.read()).rejects.toBe("broken");
  });

  test("first sends what a filter holds, but not the beginning of the usage that only the proxy requested", async () => {
    const held = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n';
    const { meter, writer } = start({
      filter: createStreamUsageFilter({ includeUsage: true, continuousUsage: false }),
    });
    const reader = meter.readable.getReader();
    write(writer, `${held}data: {"cho`);
    await passTicks();
    meter.fail(frame);
    expect(await readText(reader)).toBe(held);
    expect(await readText(reader)).toBe(frameText);
  });
});

describe("a meter that holds the terminal event", () => {
  const done = "data: [DONE]\n\n";
  const hold = () => createEventHold(terminalEventsOf("/v1/chat/completions"));

  test("sends it once the usage before it is committed, and the rest after it", async () => {
    const committed = Promise.withResolvers<void>();
    const commits: Usage[] = [];
    const { meter, writer, settlements } = start({
      hold: hold(),
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
    expect(settlements).toEqual([{ usage: five, cause: undefined }]);
  });

  test("commits nothing early in a stream without one, and sends its unfinished end after the settlement", async () => {
    let commits = 0;
    const settled = Promise.withResolvers<void>();
    const { meter, writer } = start({
      hold: hold(),
      commit: async () => void commits++,
      settle: () => settled.promise,
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

describe("a meter that keeps a client alive", () => {
  beforeEach(() => void jest.useFakeTimers());

  test("sends comments before the first byte, and again after each further silence", async () => {
    const { meter } = start({ keepaliveMs: 10 });
    const reader = meter.readable.getReader();
    jest.advanceTimersByTime(10);
    expect(await readText(reader)).toBe(comment);
    jest.advanceTimersByTime(10);
    expect(await readText(reader)).toBe(comment);
    await reader.cancel();
  });

  test("sends a single line between the lines of an event", async () => {
    const { meter, writer } = start({ keepaliveMs: 10 });
    const reader = meter.readable.getReader();
    write(writer, "event: a\n");
    expect(await readText(reader)).toBe("event: a\n");
    jest.advanceTimersByTime(10);
    expect(await readText(reader)).toBe(": keepalive\n");
    await reader.cancel();
  });

  test.each(["data: {", "data: a\r", "event: a\r\n:"])("never sends a comment after %j", async (half) => {
    const { meter, writer } = start({ keepaliveMs: 2 });
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
    const { meter, writer } = start({ keepaliveMs: 2 });
    jest.advanceTimersByTime(60);
    void writer.close();
    expect(await readAll(meter.readable)).toBe(comment);
  });

  test("sends none as long as bytes come", async () => {
    const { meter, writer } = start({ keepaliveMs: 100 });
    const reader = meter.readable.getReader();
    for (let round = 0; round < 20; round++) {
      write(writer, "data: a\n\n");
      expect(await readText(reader)).toBe("data: a\n\n");
      jest.advanceTimersByTime(99);
    }
    await reader.cancel();
  });

  test("leaves a byte order mark at the start", async () => {
    const { meter, writer } = start({ keepaliveMs: 1000 });
    write(writer, "\uFEFFdata: a\n\n");
    void writer.close();
    expect(await readAll(meter.readable)).toBe("\uFEFFdata: a\n\n");
  });

  test("drops a byte order mark that follows a comment", async () => {
    const { meter, writer } = start({ keepaliveMs: 10 });
    const reader = meter.readable.getReader();
    jest.advanceTimersByTime(10);
    expect(await readText(reader)).toBe(comment);
    write(writer, "\uFEFFdata: a\n\n");
    write(writer, "\uFEFFdata: b\n\n");
    expect(await readText(reader)).toBe("data: a\n\n");
    expect(await readText(reader)).toBe("\uFEFFdata: b\n\n");
    await reader.cancel();
  });

  test("leaves no timer behind, however the response ends", async () => {
    const endings: ((started: Started) => Promise<unknown>)[] = [
      ({ meter }) => meter.readable.cancel(),
      ({ writer }) => writer.abort("broken"),
      ({ meter, writer }) => Promise.all([writer.close(), readAll(meter.readable)]),
    ];
    for (const end of endings) {
      await end(start({ keepaliveMs: 5 }));
      expect(jest.getTimerCount()).toBe(0);
    }
  });
});
