/** A port that was free a moment ago, for programs that cannot report a port that they chose themselves. */
export function findFreePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}
