import { expect, test } from "bun:test";
import { createLog } from "../../../src/log/log.ts";
import { streamJson } from "../../../src/admin/http/json-stream.ts";

const logged: string[] = [];
const log = createLog({ level: "debug", format: "json", clock: () => 0, write: (line) => logged.push(line) });
const chunk = (text: string) => new TextEncoder().encode(text);

/** Counts the chunks that were read, and how often the source was released. */
function source(chunks: number, size = 1) {
  const released = Promise.withResolvers<void>();
  const state = { read: 0, released: 0, whenReleased: released.promise };
  async function* generate(): AsyncGenerator<Uint8Array> {
    try {
      for (; state.read < chunks;) {
        state.read += 1;
        yield chunk(`${state.read === 1 ? "" : ","}"${"x".repeat(size)}"`);
      }
    } finally {
      state.released += 1;
      released.resolve();
    }
  }
  return { state, chunks: generate() };
}

test("responds to HEAD after the first chunk", async () => {
  const { state, chunks } = source(1000);
  const response = await streamJson({ method: "HEAD" }, ["[", chunks, "]"], log);
  expect([response.body, state.read, state.released]).toEqual([null, 1, 1]);
});

test("breaks the connection off if a later chunk fails, so that half a list does not look complete", async () => {
  const received = Promise.withResolvers<void>();
  async function* breaking(): AsyncGenerator<Uint8Array> {
    yield chunk("1");
    await received.promise;
    throw new Error("locked");
  }
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    error: () => new Response("", { status: 500 }),
    fetch: () => streamJson({ method: "GET" }, ["[", breaking(), "]"], log),
  });
  const response = await fetch(server.url);
  received.resolve();
  await expect(response.text()).rejects.toThrow();
  expect(logged.join("")).toContain("locked");
  await server.stop(true);
});
