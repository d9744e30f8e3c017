import { createConnections, listen } from "../../src/runtime/listen.ts";

/**
 * Serves until its standard input ends, then prints the longest tick in milliseconds. A program of its own: under
 * `bun test` the event loop runs differently (1.4.5). Argument: `listen` or `bun`.
 */
const [how] = process.argv.slice(2);

/** As little as a response can cost here. */
async function respond(): Promise<Response> {
  const startedAt = performance.now();
  while (performance.now() - startedAt < 0.05);
  return new Response();
}

const options = { host: "127.0.0.1", port: 0, shared: false, fetch: respond, internalError: () => new Response() };
const url =
  how === "listen"
    ? listen({ ...options, connections: createConnections() }).url
    : Bun.serve({ port: 0, hostname: "127.0.0.1", development: false, fetch: respond }).url.origin;
process.stdout.write(`${new URL(url).port}\n`);

let [longestMs, last] = [0, performance.now()];
function turn(): void {
  longestMs = Math.max(longestMs, performance.now() - last);
  last = performance.now();
  setImmediate(turn);
}
turn();

for await (const _ of Bun.stdin.stream());
// After the tick that took this in.
await Bun.sleep(10);
process.stdout.write(`${Math.round(longestMs)}\n`);
process.exit(0);
