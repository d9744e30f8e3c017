import { afterEach, expect, test } from "bun:test";
import type { Socket } from "bun";
import { connectRaw, type MessageEnding } from "./raw-client.ts";
import { pollUntil } from "./poll-until.ts";

let stop: (() => void) | undefined;
afterEach(() => stop?.());

/** A server that calls `respond` with received bytes and records what it received. */
function serve(respond: (socket: Socket, request: string) => void) {
  const seen = { text: "", isClosed: false, closeError: undefined as Error | undefined };
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    allowHalfOpen: true,
    socket: {
      data(socket, bytes) {
        seen.text += bytes.toString();
        respond(socket, bytes.toString());
      },
      // Without this handler Bun closes the other half too (1.4.5).
      // Remove when `allowHalfOpen` is enough.
      end() {},
      close(_, error) {
        seen.isClosed = true;
        seen.closeError = error;
      },
    },
  });
  stop = () => listener.stop(true);
  return { url: `http://127.0.0.1:${listener.port}`, seen };
}

const ends: Record<string, [bytes: string, how: "end" | "terminate" | "stay", ending: MessageEnding, body: string]> = {
  "a body of the announced length": ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "stay", "complete", "ok"],
  "a body that is too short": ["HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "end", "truncated", "ok"],
  "a body whose connection is reset": ["HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "terminate", "reset", "ok"],
  "chunks with their terminator": [
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1;x=y\r\nk\r\n0\r\nTrailer: 1\r\n\r\n",
    "stay",
    "complete",
    "ok",
  ],
  "chunks without their terminator": [
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
    "end",
    "truncated",
    "ok",
  ],
  "a chunk longer than its size": [
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nokay\r\n",
    "stay",
    "malformed",
    "o",
  ],
  "a body without a length": ["HTTP/1.0 200 OK\r\n\r\nok", "end", "complete", "ok"],
  "a body without a length that is reset": ["HTTP/1.0 200 OK\r\n\r\nok", "terminate", "reset", "ok"],
  "a status without a body": ["HTTP/1.1 304 Not Modified\r\n\r\n", "stay", "complete", ""],
  "half a head": ["HTTP/1.1 200 OK\r\nConte", "end", "truncated", ""],
  "no response at all": ["", "end", "truncated", ""],
  "bytes that are not HTTP": ["SSH-2.0-OpenSSH\r\n\r\n", "stay", "malformed", ""],
};

for (const [name, [bytes, how, ending, body]] of Object.entries(ends)) {
  test(`${name} (${how}) ends as ${ending}`, async () => {
    const { url } = serve((socket) => {
      socket.write(bytes);
      if (how !== "stay") socket[how]();
    });
    const client = await connectRaw(url);
    client.request("GET", "/");
    expect(await client.ended()).toBe(ending);
    expect(await client.text()).toBe(body);
    expect(client.received().toString()).toBe(bytes);
    client.close();
  });
}

test("the server sees a reset as a reset and a close as a close", async () => {
  for (const how of ["reset", "close"] as const) {
    const { url, seen } = serve((socket) => void socket.write("x"));
    const client = await connectRaw(url);
    client.send("hello");
    await pollUntil(() => seen.text === "hello");
    client[how]();
    await client.closed();
    if (how === "reset") await pollUntil(() => seen.isClosed);
    expect(seen.closeError === undefined).toBe(how === "close");
    stop?.();
  }
});
