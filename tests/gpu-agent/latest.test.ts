import { expect, test } from "bun:test";
import { getEventListeners } from "node:events";
import { createLatest } from "../../src/gpu-agent/post-samples.ts";

test("a waiting taker gets undefined when the signal aborts", async () => {
  const latest = createLatest<number>();
  const stop = new AbortController();
  const taken = latest.take(stop.signal);
  stop.abort();
  expect(await taken).toBeUndefined();
});

test("a take after the abort gets undefined", async () => {
  const latest = createLatest<number>();
  latest.put(1);
  expect(await latest.take(AbortSignal.abort())).toBeUndefined();
});

test("a take leaves no listener on the signal", async () => {
  const latest = createLatest<number>();
  const { signal } = new AbortController();
  const taken = latest.take(signal);
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  latest.put(1);
  await taken;
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});
