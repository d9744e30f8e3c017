import { afterEach, describe, expect, jest, test } from "bun:test";
import { passTicks } from "../../support/event-loop.ts";
import { passEvents, readAll, readText, startMeter, text, utf8, write } from "./start-meter.ts";

afterEach(() => void jest.useRealTimers());

describe("a meter that fails", () => {
  const frame = utf8.encode('data: {"error":{}}\n\n');
  const frameText = text.decode(frame);
  const long = `data: ${"x".repeat(64 * 1024)}`;

  test.each([
    ["between events", ["data: a\n\n"], `data: a\n\n${frameText}`],
    ["between the lines of a long event", [`${long}\n`], `${long}\n\n${frameText}`],
    ["inside a line of a long event", ["data: a\n\n", long], `data: a\n\n${long}\n\n${frameText}`],
    ["after a CR in a long event", [`${long}\r`], `${long}\r\n\n${frameText}`],
    ["after the end of a long event", [long, "\n\n"], `${long}\n\n${frameText}`],
    ["after a comment", [": a\n"], `: a\n${frameText}`],
  ])("%s puts its frame on a line of its own", async (_, chunks, expected) => {
    const { meter, writer, finishes } = startMeter();
    const reader = meter.readable.getReader();
    let received = "";
    for (const chunk of chunks) {
      write(writer, chunk);
      received += await readText(reader);
    }
    void meter.fail(frame);
    received += await readText(reader);
    expect(received).toBe(expected);
    await meter.abort("broken");
    expect(reader.read()).rejects.toBe("broken");
    expect(finishes).toHaveLength(1);
    expect(finishes[0]?.cause).toBe("broken");
  });

  test("before any byte sends nothing: the caller still has a whole response to give", async () => {
    const { meter } = startMeter();
    void meter.fail(frame);
    expect(meter.hasSent).toBe(false);
    await meter.abort("broken");
    expect(meter.started).rejects.toBe("broken");
  });

  test("sends nothing after the frame, and the frame once", async () => {
    jest.useFakeTimers();
    const { meter, writer } = startMeter({ keepaliveMs: 5 });
    write(writer, "data: a\n\n");
    await meter.started;
    void meter.fail(frame);
    void meter.fail(frame);
    write(writer, "data: late\n\n");
    void writer.close();
    jest.advanceTimersByTime(20);
    expect(await readAll(meter.readable)).toBe(`data: a\n\n${frameText}`);
  });

  test("sends no frame if there is none to send, nor once the response is committed", async () => {
    const broken = startMeter();
    void broken.meter.fail(undefined);
    await broken.meter.abort("broken");
    expect(broken.meter.readable.getReader().read()).rejects.toBe("broken");

    const left = startMeter();
    await left.meter.readable.cancel("gone");
    void left.meter.fail(frame);
    expect(left.finishes).toHaveLength(1);
  });

  test("drops an unfinished event that was held", async () => {
    const { meter, writer } = startMeter();
    const reader = meter.readable.getReader();
    write(writer, 'data: a\n\ndata: {"cho');
    expect(await readText(reader)).toBe("data: a\n\n");
    void meter.fail(frame);
    expect(await readText(reader)).toBe(frameText);
    await meter.abort("broken");
    expect(reader.read()).rejects.toBe("broken");
  });

  test("sends no frame after the terminal event", async () => {
    const { meter, writer } = startMeter();
    const reader = meter.readable.getReader();
    write(writer, "data: a\n\ndata: [DONE]\n\n");
    expect(await readText(reader)).toBe("data: a\n\n");
    expect(await readText(reader)).toBe("data: [DONE]\n\n");
    void meter.fail(frame);
    await meter.abort("broken");
    expect(reader.read()).rejects.toBe("broken");
  });

  test("sends a terminal event whose usage is being committed, and no frame", async () => {
    const committed = Promise.withResolvers<void>();
    const { meter, writer } = startMeter({
      commit: () => committed.promise,
    });
    const reader = meter.readable.getReader();
    write(writer, "data: a\n\ndata: [DONE]\n\n");
    expect(await readText(reader)).toBe("data: a\n\n");
    let failed = false;
    const failing = meter.fail(frame).then(() => (failed = true));
    await passTicks();
    expect(failed).toBe(false);
    committed.resolve();
    await failing;
    expect(await readText(reader)).toBe("data: [DONE]\n\n");
  });

  test("does not fail itself if the client leaves while the usage is being committed", async () => {
    const committed = Promise.withResolvers<void>();
    const { meter, writer } = startMeter({
      commit: () => committed.promise,
    });
    write(writer, "data: a\n\ndata: [DONE]\n\n");
    await meter.started;
    const failing = meter.fail(frame);
    await meter.readable.cancel("gone");
    committed.resolve();
    await failing;
    await meter.abort("broken");
  });

  test("first sends what a filter holds, but not the beginning of the usage that only the proxy requested", async () => {
    const held = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n';
    const { meter, writer } = startMeter({
      passage: passEvents({ includeUsage: true, continuousUsage: false }),
    });
    const reader = meter.readable.getReader();
    write(writer, `${held}data: {"cho`);
    await passTicks();
    void meter.fail(frame);
    expect(await readText(reader)).toBe(held);
    expect(await readText(reader)).toBe(frameText);
  });
});
