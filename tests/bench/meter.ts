import { createResponseCharge } from "../../src/proxy/response/charge.ts";
import { dialectOf } from "../../src/proxy/response/dialect.ts";
import { createStreamUsageFilter } from "../../src/proxy/stream/filter.ts";
import { createMeter } from "../../src/proxy/stream/meter.ts";
import { createPassage } from "../../src/proxy/stream/passage.ts";

const frames = 200_000;
const rounds = 7;
const frame = new TextEncoder().encode(
  'data: {"id":"chatcmpl-8f1c","object":"chat.completion.chunk","created":1763700000,"model":"m","choices":' +
    '[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}\n\n',
);

type Passage = ReadableWritablePair<Uint8Array, Uint8Array>;

function passthrough(): Passage {
  return new TransformStream({
    transform(chunk: Uint8Array, controller) {
      controller.enqueue(chunk);
    },
  });
}

const headers = { contentType: "text/event-stream", contentEncoding: null };

function meter(options: Partial<Parameters<typeof createPassage>[1]> = {}, keepaliveMs = 0): Passage {
  const passage = createPassage(headers, { listener: {}, ...options });
  const heartbeats = dialectOf("/v1/chat/completions");
  return createMeter({ passage, heartbeats, keepaliveMs, commit: async () => {}, finish: async () => {} });
}

const charge = () =>
  createResponseCharge({
    reservation: { inputTokens: 7, tokens: 1000, texts: 1, prompts: 1 },
    method: "POST",
    path: "/v1/chat/completions",
    response: new Response(null, { headers: { "content-type": "text/event-stream" } }),
  });
const filter = () => createStreamUsageFilter({ includeUsage: true, continuousUsage: false });

/** @returns microseconds of CPU per frame */
async function cost(passage: Passage): Promise<number> {
  let left = frames;
  const source = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (left-- > 0) controller.enqueue(frame);
      else controller.close();
    },
  });
  const before = process.cpuUsage();
  const reader = source.pipeThrough(passage).getReader();
  while (!(await reader.read()).done);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / frames;
}

const kinds: Record<string, () => Passage> = {
  "plain passthrough": passthrough,
  meter: () => meter(),
  "meter with keepalive": () => meter({}, 15_000),
  "meter with filter": () => meter({ filter: filter() }),
  "meter that estimates": () => meter({ listener: charge()?.output }),
};
const best = new Map<string, number>();
for (let round = 0; round < rounds; round++) {
  for (const [name, start] of Object.entries(kinds)) {
    best.set(name, Math.min(best.get(name) ?? Infinity, await cost(start())));
  }
}
const plain = best.get("plain passthrough") ?? 0;
for (const [name, microseconds] of best) {
  console.log(
    `${name.padEnd(22)}${microseconds.toFixed(2)} µs per frame, ${(microseconds / plain).toFixed(2)} times plain`,
  );
}
