import { expect, test } from "bun:test";
import { dialectOf } from "../../../src/proxy/response/dialect.ts";
import { pump } from "../../../src/proxy/response/pump.ts";
import { createReadTimeouts } from "../../../src/proxy/upstream/forward.ts";
import { passEvents, startMeter, utf8 } from "../stream/start-meter.ts";

/** Calls back in each tick of the event loop. @returns stops it */
function inEachTick(act: () => void): () => void {
  let isOver = false;
  const tick = (): void => {
    if (isOver) return;
    act();
    setImmediate(tick);
  };
  tick();
  return () => void (isOver = true);
}

test.each([
  ["short events", "a\n\n"],
  ["comments", ":\n\n"],
  ["what looks like the end of a stream", "data: message_stop\n\n"],
])("a million bytes of %s in one chunk keep others waiting for a part of their time only", async (_, unit) => {
  const sent = unit.repeat(1_000_000 / unit.length);
  const { meter, writer } = startMeter({ passage: passEvents({ includeUsage: true, continuousUsage: true }) });
  writer.releaseLock();
  const readTimeout = createReadTimeouts(() => performance.now())(60_000, () => {});
  const { signal } = new AbortController();
  const start = process.threadCpuUsage();
  let last = start;
  let longest = 0;
  const measure = (): void => {
    const { user, system } = process.threadCpuUsage(last);
    longest = Math.max(longest, user + system);
    last = process.threadCpuUsage();
  };
  const stop = inEachTick(measure);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(utf8.encode(sent));
      controller.close();
    },
  });
  const response = new Response(body);
  const upstream = { response, readTimeout, signal, abort: () => {}, onBodyRead: () => {}, release: () => {} };
  void pump(upstream, meter, { dialect: dialectOf("/v1/chat/completions"), requestId: "r-1", onFirstByte: () => {} });
  expect(await new Response(meter.readable).text()).toBe(sent);
  stop();
  measure();
  readTimeout.clear();
  const { user, system } = process.threadCpuUsage(start);
  expect(longest / (user + system)).toBeLessThan(0.4);
});
