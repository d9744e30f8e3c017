import { afterEach, expect, test } from "bun:test";
import type { Socket } from "bun";
import { connectRaw, type MessageEnding } from "./raw-client.ts";
import { rejectionOf } from "./rejection.ts";
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

test("bytes are sent exactly as given", async () => {
  const { url, seen } = serve((socket) => void socket.write("HTTP/1.1 204 No Content\r\n\r\n"));
  const client = await connectRaw(url);
  client.request("PATCH", "/a/../b//%2e?q#f", { "x-ONE": "1" }, "a body");
  await client.ended();
  expect(seen.text).toBe(
    `PATCH /a/../b//%2e?q#f HTTP/1.1\r\nHost: ${new URL(url).host}\r\nx-ONE: 1\r\nContent-Length: 6\r\n\r\na body`,
  );
  client.close();
});

test("a head that never arrives is an error that names the ending", async () => {
  const { url } = serve((socket) => socket.terminate());
  const client = await connectRaw(url);
  client.request("GET", "/");
  expect(String(await rejectionOf(client.head()))).toContain("No head: reset");
});

test("waiting past the deadline is an error with what arrived", async () => {
  const { url } = serve((socket) => void socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome"));
  const client = await connectRaw(url, { deadlineMs: 1000 });
  client.request("GET", "/");
  expect(String(await rejectionOf(client.bodyContaining("more")))).toMatch(/within 1000 ms.*some/);
  client.close();
});

test("events are returned one by one, with any line ends and any cuts", async () => {
  const events = ["data: 한국\n\n", ": comment\r\n\r\n", "event: x\ndata: 2\n\n"];
  const { url } = serve((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (const byte of Buffer.from(events.join(""))) socket.write(Buffer.from([49, 13, 10, byte, 13, 10]));
    socket.write("0\r\n\r\n");
  });
  const client = await connectRaw(url);
  client.request("GET", "/");
  for (const event of [...events, undefined]) expect(await client.nextEvent()).toBe(event);
  client.close();
});

test("interim responses are separate from the final one", async () => {
  const { url } = serve(
    (socket) => void socket.write("HTTP/1.1 103 Early Hints\r\na: 1\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"),
  );
  const client = await connectRaw(url);
  client.request("GET", "/");
  expect((await client.head()).status).toBe(204);
  expect(client.interim()[0]?.header("A")).toBe("1");
  client.close();
});

test("one connection returns responses in sequence, also if they arrive together", async () => {
  const response = (text: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
  const { url } = serve((socket) => void socket.write(response("one") + response("two")));
  const client = await connectRaw(url);
  client.request("GET", "/");
  expect(await client.text()).toBe("one");
  client.nextResponse();
  expect(await client.text()).toBe("two");
  client.close();
});

test("a paused client stops the sender", async () => {
  let sent = 0;
  const block = Buffer.alloc(64 * 1024);
  const { url } = serve((socket) => {
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    const fill = setInterval(() => {
      const taken = socket.write(block);
      sent += Math.max(0, taken);
      if (taken < block.length) clearInterval(fill);
    });
  });
  const client = await connectRaw(url, { keepBody: false });
  client.request("GET", "/");
  await client.head();
  client.pause();
  await pollUntil(() => sent > 1024 * 1024);
  expect(client.bodyBytes()).toBeLessThan(sent);
  client.resume();
  await pollUntil(() => client.bodyBytes() >= sent);
  client.close();
});

test("a half-closed connection still receives the response", async () => {
  const { url } = serve((socket) => {
    setTimeout(() => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate"), 30);
  });
  const client = await connectRaw(url);
  client.request("GET", "/");
  client.halfClose();
  expect(await client.text()).toBe("late");
  client.close();
});

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
