import { expect, test } from "bun:test";
import type { Socket } from "node:net";
import { serveRaw } from "./raw-http.ts";
import { stillNeeded } from "./still-needed.ts";

async function run(script: string, prefix: readonly string[] = []): Promise<{ stdout: string; stderr: string }> {
  const child = Bun.spawn([...prefix, process.execPath, "-e", script], {
    env: { PATH: process.env["PATH"] ?? "" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  await child.exited;
  return { stdout, stderr };
}

stillNeeded("Bun still limits fetch to 256 concurrent requests", "src/runtime/bun-settings.ts", async () => {
  const { stdout } = await run(`
    const limitReached = Promise.withResolvers();
    let requests = 0;
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch(request) {
      if (request.headers.has("x-last")) return new Response();
      if (++requests === 256) limitReached.resolve();
      return new Promise(() => {});
    } });
    process.env.BUN_CONFIG_MAX_HTTP_REQUESTS = "1000";
    for (let n = 0; n < 300; n++) fetch(server.url).catch(() => {});
    await limitReached.promise;
    const last = Promise.withResolvers();
    // Not through fetch, so it arrives after every request that is not held back.
    Bun.connect({ hostname: "127.0.0.1", port: server.port, socket: {
      open: (socket) => void socket.write("GET / HTTP/1.1\\r\\nHost: h\\r\\nX-Last: 1\\r\\n\\r\\n"),
      data: last.resolve,
    } });
    await last.promise;
    console.log(requests);
    process.exit();`);
  expect(stdout).toBe("256\n");
});

stillNeeded("Bun still exits if its first fetch finds no descriptor", "src/runtime/bun-settings.ts", async () => {
  const script = `
    const { openSync } = require("node:fs");
    try { for (;;) openSync("/dev/null"); } catch {}
    await fetch("http://127.0.0.1:1/").catch(() => {});
    console.log("survived");`;
  const { stdout, stderr } = await run(script, ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"]);
  expect(stdout).toBe("");
  expect(stderr).toContain("file descriptors");
});

stillNeeded("Bun still passes on an unknown transfer coding undecoded", "src/proxy/upstream/forward.ts", async () => {
  using server = await serveRaw((socket) =>
    socket.end("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
  );
  const response = await fetch(server.url);
  expect(response.headers.get("transfer-encoding")).toBe("gzip, chunked");
  expect(await response.text()).toBe("abc");
});

/** Sends a POST, then another request over its connection, which the server closes without a response. */
async function reuseClosing(method: string): Promise<{ error: unknown; connections: number }> {
  using server = await serveRaw((socket, number) => {
    if (number === 1) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    else socket.destroy();
  });
  await (await fetch(server.url, { method: "POST", body: "x" })).text();
  const error = await fetch(server.url, { method }).then(
    () => undefined,
    ({ code }: { code?: unknown }) => code,
  );
  return { error, connections: server.connections() };
}

stillNeeded(
  "Bun still fails a POST or PATCH on a closing connection",
  "src/proxy/upstream/connections.ts",
  async () => {
    for (const method of ["POST", "PATCH"]) {
      expect(await reuseClosing(method)).toEqual({ error: "ECONNRESET", connections: 1 });
    }
  },
);

stillNeeded("Bun still retries a DELETE on a closing connection", "src/proxy/upstream/forward.ts", async () => {
  for (const method of ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]) {
    expect(await reuseClosing(method)).toEqual({ error: undefined, connections: 2 });
  }
});

test("Bun still takes a reset for the end of a body without length or chunks (see Guarantees in the handbook)", async () => {
  const connected = Promise.withResolvers<Socket>();
  using server = await serveRaw((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf");
    connected.resolve(socket);
  });
  const body = (await fetch(server.url)).body?.getReader();
  expect((await body?.read())?.value).toEqual(Buffer.from("half"));
  (await connected.promise).resetAndDestroy();
  expect((await body?.read())?.done).toBeTrue();
});
