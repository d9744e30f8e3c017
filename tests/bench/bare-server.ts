/**
 * A minimal proxy on Bun, which shows the runtime's share of a cost: `bun tests/bench/bare-server.ts
 * hello|passthrough|transform PORT UPSTREAM`. It has no keys, counts, timeouts, rewrites or log. `hello` needs no backend;
 * `transform` pipes streams through a TransformStream, as a proxy that reads them does.
 */
import { argv } from "node:process";

const [kind, port, upstream] = argv.slice(2);

const hello = (): Response => Response.json({ hello: "world" });

/** Reads bodies of known length whole and forwards streams as they arrive, the cheapest way for each. */
async function passthrough(request: Request): Promise<Response> {
  const url = upstream + request.url.slice(request.url.indexOf("/", 8));
  const response = await fetch(url, {
    method: request.method,
    headers: { "content-type": "application/json", "x-simulate": request.headers.get("x-simulate") ?? "" },
    body: await request.bytes(),
    signal: request.signal,
    decompress: false,
  });
  const { status, headers } = response;
  const init = { status, headers: { "content-type": headers.get("content-type") ?? "" } };
  if (headers.has("content-length")) return new Response(await response.bytes(), init);
  return new Response(kind === "transform" ? response.body?.pipeThrough(new TransformStream()) : response.body, init);
}

Bun.serve({ hostname: "127.0.0.1", port: Number(port), idleTimeout: 0, fetch: kind === "hello" ? hello : passthrough });
