import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { startTollgate } from "../support/tollgate.ts";
import { createConnections, listen } from "../../src/runtime/listen.ts";

const idleSeconds = 2;
/** Far longer than a loaded machine needs to close the connection. */
const deadlineMs = 25_000;

/** Sends `first`, then one byte every third of a second. @returns the ms until the server closed the connection, or Infinity */
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
      return new Response("ok");
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
  const deadline = setTimeout(() => closed.resolve(Infinity), deadlineMs);
  const closedAfter = await closed.promise;
  clearTimeout(deadline);
  clearInterval(timer);
  socket.destroy();
  await listener.cut();
  return closedAfter;
}

describe.concurrent("slow heads:", () => {
  // Bun limits the first head of a connection to twelve seconds, whatever the idle timeout is (1.4.5).
  test("a connection whose first head arrives slowly is closed within seconds", async () => {
    expect(await trickle("GET /v1/models HTTP/1.1\r\nHost: h\r\nX-Slow: ")).toBeLessThan(deadlineMs);
  });

  test("a connection whose next head arrives slowly is closed after the idle timeout", async () => {
    const request = "GET /v1/models HTTP/1.1\r\nHost: h\r\n\r\n";
    expect(await trickle(`${request}GET /v1/models HTTP/1.1\r\nHost: h\r\nX-Slow: `)).toBeLessThan(deadlineMs);
  });

  test("a connection whose body is not read is closed after the idle timeout", async () => {
    expect(await trickle("POST /v1/files HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n")).toBeLessThan(
      deadlineMs,
    );
  });
});

describe.concurrent("half-sent requests:", () => {
  const whole = `{"model":"m"${" ".repeat(488)}`;
  test.each([
    ["POST /v1/chat/completions", 401, "after its head", "", true],
    ["POST /v1/chat/completions", 401, "in the middle of its body", '{"model":', true],
    ["POST /v1/chat/completions", 401, "at its end", whole, false],
    ["POST /api/keys", 401, "after its head", "", true],
    ["POST /api/gpu-stats", 401, "in the middle of its body", '{"model":', true],
    ["POST /api/unknown", 404, "in the middle of its body", '{"model":', true],
    ["POST /api/login", 408, "in the middle of its body", '{"model":', true],
    ["POST /api/login", 400, "at its end", whole, false],
    ["POST /api/keys", 401, "at its end", whole, false],
  ])(
    "the connection of %s that is refused with %i %s is closed within seconds, unless it is whole",
    async (target, status, _, sent, isClosed) => {
      await using gate = await startTollgate({ PROXY_UPSTREAM_URL: "http://127.0.0.1:9" });
      const socket = connect({ host: "127.0.0.1", port: Number(new URL(gate.url).port) });
      const closed = new Promise<number>((resolve) => socket.on("close", () => resolve(performance.now())));
      const headers = "Host: h\r\nContent-Type: application/json\r\nx-api-key: wrong\r\nContent-Length: 500\r\n\r\n";
      const answered = Promise.withResolvers<string>();
      socket.on("data", (bytes) => answered.resolve(bytes.toString()));
      socket.write(`${target} HTTP/1.1\r\n${headers}${sent}`);
      expect(await answered.promise).toStartWith(`HTTP/1.1 ${status}`);
      const answeredAt = performance.now();
      // Three times the time after which it is due: Bun looks every four seconds.
      const closedAt = await Promise.race([closed, Bun.sleep(15_000)]);
      socket.destroy();
      expect([sent, closedAt !== undefined]).toEqual([sent, isClosed]);
      if (closedAt !== undefined) expect(closedAt - answeredAt).toBeGreaterThan(900);
    },
  );
});
