import { afterAll, beforeAll, describe, expect } from "bun:test";
import { X509Certificate } from "node:crypto";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { readCertificate } from "../../src/runtime/certificate.ts";
import { createAuthority, whyNoOpenssl } from "../support/authority.ts";
import { exchange } from "./raw-http.ts";
import { stillNeeded } from "./still-needed.ts";

const idleSeconds = 1;

let server: Bun.Server<undefined>;
let port: number;
beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    idleTimeout: idleSeconds,
    routes: { "/parameter/:text": ({ params }) => new Response(encodeURIComponent(params.text)) },
    fetch: (request) => responses[request.headers.get("x-respond") ?? "with url"]?.(request) ?? new Response(),
  });
  port = server.port ?? 0;
});
afterAll(() => server.stop(true));

const responses: Readonly<Record<string, (request: Request) => Response | Promise<Response>>> = {
  "with url": (request) => new Response(request.url),
  "with bytes": () => new Response(new Uint8Array(1)),
  "without body": () => new Response(null),
  "after body": async (request) => new Response(await request.text()),
  "without timeout"(request) {
    server.timeout(request, 0);
    return new Response();
  },
};

const get = (target: string, respond: string, host = "h"): Promise<string> =>
  exchange(port, `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nX-Respond: ${respond}\r\nConnection: close\r\n\r\n`);

stillNeeded("Bun still resolves dot segments in request.url", "src/proxy/request/path.ts", async () => {
  expect(await get("/v1/../secret", "with url")).toEndWith("\r\n\r\nhttp://h/secret");
  expect(await get("/v1/%2e%2e/secret", "with url")).toEndWith("\r\n\r\nhttp://h/secret");
});

stillNeeded(
  "Bun's parameters still lose what follows a `%` that encodes nothing",
  "src/proxy/request/path.ts",
  async () => {
    expect(await get("/parameter/a%..b", "")).toEndWith("\r\n\r\na%EF%BF%BDb");
    expect(await get("/parameter/%u002e", "")).toEndWith("\r\n\r\n%EF%BF%BD02e");
  },
);

stillNeeded("Bun still gives a relative request.url for an invalid Host", "src/server/app.ts", async () => {
  expect(await get("/v1/../secret", "with url", "not valid")).toEndWith("\r\n\r\n/v1/../secret");
});

stillNeeded("Bun still adds a content type to a response of bytes", "src/proxy/response/respond.ts", async () => {
  expect(await get("/", "with bytes")).toMatch(/\r\ncontent-type: application\/octet-stream\r\n/i);
});

stillNeeded("Bun still drops a frame right before a stream error", "src/proxy/response/dialect.ts", async () => {
  const firstReceived = Promise.withResolvers<void>();
  let pulls = 0;
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    if (++pulls === 1) return controller.enqueue(Buffer.from("first"));
    await firstReceived.promise;
    controller.enqueue(Buffer.from("last"));
    controller.error("broken");
  };
  const body = (): ReadableStream<Uint8Array> => new ReadableStream({ pull }, { highWaterMark: 0 });
  const failing = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    fetch: () => new Response(body()),
  });
  const request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  const received = await exchange(failing.port ?? 0, request, firstReceived.resolve);
  expect(received).toContain("first");
  expect(received).not.toContain("last");
  await failing.stop(true);
});

stillNeeded("Bun still buffers a body that nothing reads, without limit", "src/admin/session/login.ts", async () => {
  const released = Promise.withResolvers<Response>();
  const waiting = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: () => released.promise,
  });
  // Far more than the buffers of two sockets.
  const bytes = 64 * 1024 * 1024;
  const socket = connect(waiting.port ?? 0, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(`POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ${bytes}\r\n\r\n`);
  await new Promise((resolve) => socket.write(Buffer.alloc(bytes), resolve));
  released.resolve(new Response());
  socket.destroy();
  await waiting.stop(true);
});

describe.concurrent("idle timeouts:", () => {
  stillNeeded("Bun still closes a connection on which a body trickles in", "src/proxy/life-of-request.ts", async () => {
    const head = "POST / HTTP/1.1\r\nHost: h\r\nX-Respond: after body\r\nContent-Length: 1000\r\n\r\n";
    const closed = Promise.withResolvers<void>();
    const socket = connect(port, "127.0.0.1", () => socket.write(head));
    const trickle = setInterval(() => socket.write("x"), 100);
    socket.on("error", () => {});
    socket.on("close", closed.resolve);
    const tooLate = setTimeout(() => closed.reject(new Error("still open")), 10_000);
    await closed.promise;
    clearTimeout(tooLate);
    clearInterval(trickle);
  });

  stillNeeded("Bun still keeps server.timeout for the whole connection", "src/runtime/listen.ts", async () => {
    const request = (respond: string): string => `GET / HTTP/1.1\r\nHost: h\r\nX-Respond: ${respond}\r\n\r\n`;
    let isOpen = true;
    const responded = Promise.withResolvers<void>();
    const socket = connect(port, "127.0.0.1", () => socket.write(request("without timeout")));
    socket.on("data", () => responded.resolve());
    socket.on("close", () => (isOpen = false));
    await responded.promise;
    // Closed by its timeout, although it was idle for a shorter time.
    await exchange(port, request("with url"));
    // Time for the event of the first connection to arrive.
    await get("/", "with url");
    expect(isOpen).toBe(true);
    socket.destroy();
  });
});

stillNeeded("Bun still adds a length to the response to a HEAD", "src/proxy/response/respond.ts", async () => {
  const head = "HEAD / HTTP/1.1\r\nHost: h\r\nX-Respond: without body\r\nConnection: close\r\n\r\n";
  expect((await exchange(port, head)).toLowerCase()).toContain("content-length: 0");
});

stillNeeded("Bun's reload still ignores the certificate", "src/runtime/listen.ts", async () => {
  if (whyNoOpenssl !== undefined) return;
  using authority = await createAuthority();
  const [one, other] = [authority.sign("one"), authority.sign("other")].map(readCertificate);
  const handler = { fetch: () => new Response("") };
  const secure = Bun.serve({ port: 0, hostname: "127.0.0.1", tls: { cert: one?.cert, key: one?.key }, ...handler });
  secure.reload({ tls: { cert: other?.cert, key: other?.key }, ...handler });
  const served = await new Promise<Buffer>((resolve, reject) => {
    const socket = connectTls({ port: secure.port, host: "127.0.0.1", ca: authority.ca }, () => {
      resolve(socket.getPeerCertificate().raw);
      socket.destroy();
    }).once("error", reject);
  });
  expect(new X509Certificate(served).subject).toBe("CN=one");
  await secure.stop(true);
});
