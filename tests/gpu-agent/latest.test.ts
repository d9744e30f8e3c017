import { expect, test } from "bun:test";
import { getEventListeners } from "node:events";
import { createLatest } from "../../src/gpu-agent/latest.ts";

const running = new AbortController().signal;

test("the newest item wins and is taken once", async () => {
  const newest = createLatest<number>();
  newest.put(1);
  newest.put(2);
  expect(await newest.take(running)).toBe(2);
  const next = newest.take(running);
  newest.put(3);
  expect(await next).toBe(3);
});

test("a taker that waits gets nothing when the signal aborts", async () => {
  const newest = createLatest<number>();
  const stop = new AbortController();
  const taken = newest.take(stop.signal);
  stop.abort();
  expect(await taken).toBeUndefined();
});

test("nothing is taken after the signal has aborted", async () => {
  const newest = createLatest<number>();
  newest.put(1);
  expect(await newest.take(AbortSignal.abort())).toBeUndefined();
});

test("a taker leaves no listener on a signal that outlives it", async () => {
  const newest = createLatest<number>();
  const { signal } = new AbortController();
  const taken = newest.take(signal);
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  newest.put(1);
  await taken;
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});
