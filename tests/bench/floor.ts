/**
 * The least that a proxy on Bun can do, to tell the runtime's share of a cost from ours: `bun tests/bench/floor.ts
 * hello|passthrough|transform PORT UPSTREAM`. No keys, no counts, no deadlines, no rewrites, no log; `transform` pipes
 * streams through a TransformStream, which is where whoever looks at them stands.
 */
import { argv } from "node:process";

const [kind, port, upstream] = argv.slice(2);

const hello = (): Response => Response.json({ hello: "world" });

/** Small bodies whole, streams as they come: the cheapest way for each. */
async function passthrough(request: Request): Promise<Response> {
  const url = upstream + request.url.slice(request.url.indexOf("/", 8));
  const answer = await fetch(url, {
    method: request.method,
    headers: { "content-type": "application/json", "x-simulate": request.headers.get("x-simulate") ?? "" },
    body: await request.bytes(),
    signal: request.signal,
    decompress: false,
  });
  const { status, headers } = answer;
  const init = { status, headers: { "content-type": headers.get("content-type") ?? "" } };
  if (headers.has("content-length")) return new Response(await answer.bytes(), init);
  return new Response(kind === "transform" ? answer.body?.pipeThrough(new TransformStream()) : answer.body, init);
}

Bun.serve({ hostname: "127.0.0.1", port: Number(port), idleTimeout: 0, fetch: kind === "hello" ? hello : passthrough });
