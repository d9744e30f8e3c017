import { expect, test } from "bun:test";
import { createLatest } from "../../src/gpu-agent/latest.ts";
import { postLatest, postSamples, type TimedSamples } from "../../src/gpu-agent/post-samples.ts";
import { samplesOfTwo } from "./gpu-host.ts";
import { accept, startSampleReceiver } from "./sample-receiver.ts";

const key = "3f2a90d1c5e84b7f9c1b";
const endless = new AbortController().signal;
const samplesOf = (id: number) => [{ gpu_id: id, name: "GPU" }];
const refuse = () => Response.json({ error: "Invalid API key" }, { status: 401 });

/** Posts what is put until stopped; each state that is said can be awaited. */
function startPosting(url: string, { clock = (): number => 0, refusedWaitMs = 1 } = {}) {
  const newest = createLatest<TimedSamples>();
  const stop = new AbortController();
  const said: string[] = [];
  const pauses: string[] = [];
  let heard = Promise.withResolvers<void>();
  const done = postLatest({
    server: { url, key },
    newest,
    staleMs: 5000,
    backoff: {
      next: () => pauses.push("next"),
      reset: () => void pauses.push("reset"),
    },
    refusedWaitMs,
    clock,
    say(level, words) {
      said.push(`${level}: ${words}`);
      heard.resolve();
      heard = Promise.withResolvers();
    },
    signal: stop.signal,
  });
  return {
    put: (id: number, readAt = 0) => newest.put({ samples: samplesOf(id), readAt }),
    said,
    /** What was asked of the backoff so far. */
    pauses,
    nextSaid: () => heard.promise,
    stop: () => {
      stop.abort();
      return done;
    },
  };
}

test("samples are posted as the admin API takes them", async () => {
  await using receiver = startSampleReceiver();
  const answer = await postSamples({ url: `${receiver.url}/api/gpu-stats`, key }, samplesOfTwo, endless);
  expect(answer.kind).toBe("accepted");
  expect(receiver.posts).toEqual([
    {
      path: "/api/gpu-stats",
      method: "POST",
      authorization: `Bearer ${key}`,
      contentType: "application/json",
      body: { gpus: samplesOfTwo },
    },
  ]);
});

test("a redirect is not followed, so that the key stays with the host it is for", async () => {
  await using other = startSampleReceiver();
  await using receiver = startSampleReceiver(() => Response.redirect(other.url, 307));
  const answer = await postSamples({ url: receiver.url, key }, samplesOfTwo, endless);
  expect(answer.words).toContain("redirects (307)");
  expect(other.posts).toEqual([]);
});

test("a server that does not answer is given up at the deadline", async () => {
  await using receiver = startSampleReceiver(() => new Promise<Response>(() => undefined));
  const answer = await postSamples({ url: receiver.url, key, deadlineMs: 50 }, samplesOfTwo, endless);
  expect(answer).toEqual({ kind: "failed", words: `${receiver.url} is not reachable: no answer in time` });
});

test("an answer that never ends is given up at the deadline", async () => {
  await using receiver = startSampleReceiver(
    () => new Response(new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(1)) })),
  );
  const answer = await postSamples({ url: receiver.url, key, deadlineMs: 200 }, samplesOfTwo, endless);
  expect(answer.words).toContain("no answer in time");
});

test("a port where nothing listens is told as such", async () => {
  const receiver = startSampleReceiver();
  await receiver[Symbol.asyncDispose]();
  const answer = await postSamples({ url: receiver.url, key }, samplesOfTwo, endless);
  expect(answer.words).toContain("nothing listens there");
});

test("a host name that nobody knows is told as such", async () => {
  const answer = await postSamples({ url: "http://gate.invalid/", key }, samplesOfTwo, endless);
  expect(answer.kind).toBe("failed");
  expect(answer.words).toStartWith("http://gate.invalid/ is not reachable: ");
});

test("a server that speaks no TLS is a failure that names the address", async () => {
  await using receiver = startSampleReceiver();
  const url = receiver.url.replace("http:", "https:");
  const { words } = await postSamples({ url, key }, samplesOfTwo, endless);
  expect(words).toBe(`${url} is not reachable: what answers there does not speak TLS`);
});

test("no answer repeats the key", async () => {
  await using receiver = startSampleReceiver((post) => Response.json({ error: post.body }, { status: 400 }));
  for (const answer of [
    accept,
    refuse,
    () => new Response(key, { status: 500 }),
    () => Response.json({ error: "no" }, { status: 400 }),
  ]) {
    receiver.answer = answer;
    expect((await postSamples({ url: receiver.url, key }, samplesOfTwo, endless)).words).not.toContain(key);
  }
});

test("the newest samples are posted, and those that came during a request are dropped", async () => {
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

test("an outage is one line, and so is its end", async () => {
  await using receiver = startSampleReceiver(() => new Response("", { status: 503 }));
  const posting = startPosting(receiver.url);
  for (let count = 1; count <= 3; count += 1) {
    const said = posting.nextSaid();
    posting.put(count);
    await said;
  }
  receiver.answer = accept;
  const said = posting.nextSaid();
  posting.put(4);
  await said;
  expect(new Set(posting.said.slice(0, 3)).size).toBe(1);
  expect(posting.said[0]).toContain("warn: ");
  expect(posting.said[0]).toContain("answered 503; trying again");
  expect(posting.said[3]).toBe(`info: Sending samples to ${receiver.url}`);
  expect(posting.pauses).toEqual(["next", "next", "next", "reset"]);
  await posting.stop();
});

test("samples that grew old while the server was away are not sent as new ones", async () => {
  let now = 0;
  await using receiver = startSampleReceiver();
  const posting = startPosting(receiver.url, { clock: () => now });
  now = 6000;
  posting.put(1, 0);
  // The pusher takes the old one before the new one is put.
  await Bun.sleep(0);
  posting.put(2, 6000);
  await receiver.received(1);
  expect(receiver.posts.map(({ body }) => body)).toEqual([{ gpus: samplesOf(2) }]);
  await posting.stop();
});

test("a refused key is tried again, in case somebody switches it on", async () => {
  await using receiver = startSampleReceiver(refuse);
  const posting = startPosting(receiver.url);
  const refused = posting.nextSaid();
  posting.put(1);
  await refused;
  expect(posting.said[0]).toContain("refuses the key (401)");
  receiver.answer = accept;
  posting.put(2);
  await receiver.received(2);
  await posting.stop();
});

test("a refused key is not tried at once, and a stop ends the pause and a request that are under way", async () => {
  await using receiver = startSampleReceiver(refuse);
  const waiting = startPosting(receiver.url, { refusedWaitMs: 600_000 });
  const refused = waiting.nextSaid();
  waiting.put(1);
  await refused;
  waiting.put(2);
  // Long enough for a second request, if the pause were not kept.
  await Bun.sleep(100);
  expect(receiver.posts).toHaveLength(1);
  expect(waiting.pauses).toEqual([]);
  await waiting.stop();

  receiver.answer = () => new Promise<Response>(() => undefined);
  const requesting = startPosting(receiver.url);
  requesting.put(1);
  await receiver.received(2);
  await requesting.stop();
  expect(requesting.said).toEqual([]);
});
