import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { createConnections, listen } from "../../src/runtime/listen.ts";

const idleSeconds = 2;
/** A loaded machine's timers are late; a connection that is never closed outlasts this all the same. */
const patienceMs = 25_000;

/** Sends `first`, then a byte a third of a second for ever. @returns after how many ms the server hung up */
async function trickle(first: string): Promise<number> {
  const connections = createConnections(idleSeconds);
  const listener = listen({
    host: "127.0.0.1",
    port: 0,
    shared: false,
    connections,
    fetch(request) {
      const release = connections.disableIdleTimeout(request);
      release();
      return new Response("answered");
    },
    internalError: () => new Response(null, { status: 500 }),
  });
  const begun = performance.now();
  const closed = Promise.withResolvers<number>();
  const socket = connect({ host: "127.0.0.1", port: Number(new URL(listener.url).port) });
  socket.on("close", () => closed.resolve(performance.now() - begun));
  socket.on("error", () => {});
  socket.resume();
  socket.write(first);
  const timer = setInterval(() => socket.write("x"), 333);
  const closedAfter = await Promise.race([closed.promise, Bun.sleep(patienceMs).then(() => Infinity)]);
  clearInterval(timer);
  socket.destroy();
  await listener.cut();
  return closedAfter;
}

describe.concurrent("slow heads:", () => {
  // Bun's own bound for the first head of a connection, twelve seconds whatever the idle time is (1.4.5).
  test("a connection whose first head trickles in is closed within seconds", async () => {
    expect(await trickle("GET /v1/models HTTP/1.1\r\nHost: h\r\nX-Slow: ")).toBeLessThan(patienceMs);
  }, 40_000);

  test("a connection whose next head trickles in is closed when its idle time is over", async () => {
    const request = "GET /v1/models HTTP/1.1\r\nHost: h\r\n\r\n";
    expect(await trickle(`${request}GET /v1/models HTTP/1.1\r\nHost: h\r\nX-Slow: `)).toBeLessThan(patienceMs);
  }, 40_000);

  test("a body that nobody reads holds its connection no longer than that", async () => {
    expect(await trickle("POST /v1/files HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n")).toBeLessThan(
      patienceMs,
    );
  }, 40_000);
});
