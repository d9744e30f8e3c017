import { expect, test } from "bun:test";
import { failing } from "./support/failing.ts";
import { createLog } from "../../src/log/log.ts";
import { streamJson } from "../../src/admin/json-stream.ts";

const logged: string[] = [];
const log = createLog({ level: "debug", format: "json", clock: () => 0, write: (line) => logged.push(line) });
const chunk = (text: string) => new TextEncoder().encode(text);

/** Counts what was read of it, and whether it was let go. */
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

test("wraps the chunks", async () => {
  const { state, chunks } = source(2);
  expect(await (await streamJson({ method: "GET", log }, ["[", chunks, "]"])).json()).toEqual(["x", "x"]);
  expect(state.released).toBe(1);
});

test("is whole where there is nothing", async () => {
  expect(await (await streamJson({ method: "GET", log }, ['{"points":[', source(0).chunks, "]}"])).json()).toEqual({
    points: [],
  });
});

test("rejects before the head where the first chunk fails", async () => {
  await expect(streamJson({ method: "GET", log }, ["[", failing(new Error("locked")), "]"])).rejects.toThrow("locked");
});

test("answers HEAD without reading on", async () => {
  const { state, chunks } = source(1000);
  const response = await streamJson({ method: "HEAD", log }, ["[", chunks, "]"]);
  expect([response.body, state.read, state.released]).toEqual([null, 1, 1]);
});

test("breaks the connection off where a later chunk fails, so that no half list looks whole", async () => {
  async function* breaking(): AsyncGenerator<Uint8Array> {
    yield chunk("1");
    await Bun.sleep(1);
    throw new Error("locked");
  }
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    error: () => new Response("", { status: 500 }),
    fetch: () => streamJson({ method: "GET", log }, ["[", breaking(), "]"]),
  });
  await expect((async () => (await fetch(server.url)).text())()).rejects.toThrow();
  expect(logged.join("")).toContain("locked");
  await server.stop(true);
});

test("reads no further than its reader, and lets go when the reader leaves", async () => {
  const { state, chunks } = source(4000, 65_536);
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => streamJson({ method: "GET", log }, ["[", chunks, "]"]),
  });
  const left = new AbortController();
  const response = await fetch(server.url, { signal: left.signal });
  const reader = response.body?.getReader();
  await reader?.read();
  // However far the sockets' buffers let it run: it has to stop there.
  let before = -1;
  while (before !== state.read) {
    before = state.read;
    await Bun.sleep(200);
  }
  expect(state.read).toBeLessThan(1000);
  left.abort();
  await state.whenReleased;
  expect(state.released).toBe(1);
  await server.stop(true);
});
