import { expect, test } from "bun:test";
import { createLatest, postLatest, postSamples, type TimedSamples } from "../../src/gpu-agent/post-samples.ts";
import { samplesOfTwo } from "./gpu-host.ts";
import { accept, startSampleReceiver } from "./sample-receiver.ts";
import { getEventListeners } from "node:events";

const key = "3f2a90d1c5e84b7f9c1b";
const endless = new AbortController().signal;
const samplesOf = (id: number) => [{ gpu_id: id, name: "GPU" }];
const reject = () => Response.json({ error: "Invalid API key" }, { status: 401 });

/** Posts the latest samples until stopped. */
function startPosting(url: string, { clock = (): number => 0, rejectedWaitMs = 1 } = {}) {
  const latest = createLatest<TimedSamples>();
  const stop = new AbortController();
  const logged: string[] = [];
  const backoffCalls: string[] = [];
  let nextEntry = Promise.withResolvers<void>();
  const done = postLatest({
    target: { url, key },
    latest,
    staleMs: 5000,
    backoff: {
      next: () => backoffCalls.push("next"),
      reset: () => void backoffCalls.push("reset"),
    },
    rejectedWaitMs,
    clock,
    logOnChange(level, message, fields) {
      logged.push(`${level}: ${message} ${JSON.stringify(fields)}`);
      nextEntry.resolve();
      nextEntry = Promise.withResolvers();
    },
    signal: stop.signal,
  });
  return {
    put: (id: number, readAt = 0) => latest.put({ body: { gpus: samplesOf(id) }, readAt }),
    logged,
    backoffCalls,
    nextEntry: () => nextEntry.promise,
    stop: () => {
      stop.abort();
      return done;
    },
  };
}

test("gives up on a response that does not end in time", async () => {
  await using receiver = startSampleReceiver(
    () => new Response(new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(1)) })),
  );
  const result = await postSamples({ url: receiver.url, key, timeoutMs: 200 }, { gpus: samplesOfTwo }, endless);
  expect(result).toEqual({ kind: "failed", reason: "no response in time" });
});

test("posts the latest samples and drops those that arrive during a request", async () => {
  const first = Promise.withResolvers<Response>();
  await using receiver = startSampleReceiver(() => (receiver.posts.length === 1 ? first.promise : accept()));
  const posting = startPosting(receiver.url);
  posting.put(1);
  await receiver.received(1);
  for (const id of [2, 3, 4]) posting.put(id);
  first.resolve(accept());
  await receiver.received(2);
  expect(receiver.posts.map(({ body }) => body)).toEqual([{ gpus: samplesOf(1) }, { gpus: samplesOf(4) }]);
  await posting.stop();
});

test("does not send samples that became stale", async () => {
  let now = 0;
  const compared = Promise.withResolvers<void>();
  await using receiver = startSampleReceiver();
  const posting = startPosting(receiver.url, {
    clock: () => {
      compared.resolve();
      return now;
    },
  });
  now = 6000;
  posting.put(1, 0);
  await compared.promise;
  posting.put(2, 6000);
  await receiver.received(1);
  expect(receiver.posts.map(({ body }) => body)).toEqual([{ gpus: samplesOf(2) }]);
  await posting.stop();
});

test("waits after a rejected key, and a stop ends the wait", async () => {
  await using receiver = startSampleReceiver(reject);
  const posting = startPosting(receiver.url, { rejectedWaitMs: 600_000 });
  const entry = posting.nextEntry();
  posting.put(1);
  await entry;
  posting.put(2);
  // Sent after the samples were put, so it would arrive after a request without the wait.
  await postSamples({ url: receiver.url, key }, { gpus: samplesOf(3) }, endless);
  expect(receiver.posts.map(({ body }) => body)).toEqual([{ gpus: samplesOf(1) }, { gpus: samplesOf(3) }]);
  expect(posting.backoffCalls).toEqual([]);
  await posting.stop();
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
