import { expect, test } from "bun:test";
import { createConnections, listen } from "../../src/runtime/listen.ts";
import { connectRaw } from "../support/raw-client.ts";

test("a body that takes longer than the idle timeout arrives if its request disables the timeout", async () => {
  const connections = createConnections(1);
  const listener = listen({
    host: "127.0.0.1",
    port: 0,
    shared: false,
    connections,
    async fetch(request) {
      const release = connections.disableIdleTimeout(request);
      const text = await request.text();
      release();
      return new Response(`${text.length} bytes`);
    },
    internalError: () => new Response(null, { status: 500 }),
  });
  const client = await connectRaw(listener.url);
  client.send("POST /v1/x HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\n\r\n");
  for (let sent = 0; sent < 12; sent++) {
    // Plays a slow client.
    await Bun.sleep(500);
    client.send("x");
  }
  expect(await client.text()).toBe("12 bytes");
  client.close();
  await listener.cut();
});
