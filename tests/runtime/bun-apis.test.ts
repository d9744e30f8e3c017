import { expect } from "bun:test";
import { connect } from "node:net";
import { SQL } from "bun";
import { collectDefaultMetrics, Registry } from "prom-client";
import { stillNeeded } from "./still-needed.ts";

stillNeeded("Bun.sleepSync still ignores fractions of a millisecond", "src/store/sqlite/engine.ts", () => {
  const startedAt = performance.now();
  for (let n = 0; n < 1000; n++) Bun.sleepSync(0.9);
  expect(performance.now() - startedAt).toBeLessThan(800);
});

stillNeeded("Bun.SQL still prefers PGDATABASE to the URL", "src/store/postgres/pool.ts", async () => {
  const script = `console.log(new Bun.SQL({ url: "postgres://u:p@127.0.0.1:1/named" }).options.database)`;
  const child = Bun.spawn([process.execPath, "-e", script], { env: { PGDATABASE: "other" }, stdout: "pipe" });
  expect(await new Response(child.stdout).text()).toBe("other\n");
  expect(new SQL({ url: "postgres://u:p@127.0.0.1:1/named", database: "named" }).options.database).toBe("named");
});

stillNeeded("prom-client still reports NaN on Bun", "src/telemetry/process-metrics.ts", async () => {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  expect(await registry.metrics()).toMatch(/^nodejs_eventloop_lag_mean_seconds nan$/im);
});

stillNeeded("TypeScript's Transformer still lacks cancel", "src/proxy/stream/meter.ts", () => {
  const transformer: Transformer = {
    // @ts-expect-error -- if it is known, the type check fails here
    cancel() {},
  };
  expect(transformer).toBeDefined();
});

stillNeeded("Bun still ignores the backlog of a listener", "tests/support/blackhole.ts", async () => {
  const script = `
    const { createServer } = require("node:net");
    const server = createServer().listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
      console.log(server.address().port);
      setTimeout(() => Bun.sleepSync(60_000));
    });`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  const { value } = await child.stdout.getReader().read();
  const port = Number(new TextDecoder().decode(value));
  const sockets = Array.from({ length: 8 }, () => connect(port, "127.0.0.1"));
  // Nothing accepts these, so with a backlog of 1 the kernel would let only two of them connect.
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once("connect", resolve))));
  for (const socket of sockets) socket.destroy();
  child.kill("SIGKILL");
});

stillNeeded(
  "Bun still closes a half-open socket without an end handler",
  "tests/support/raw-client.test.ts",
  async () => {
    const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, allowHalfOpen: true, socket: { data() {} } });
    const closed = Promise.withResolvers<void>();
    const client = connect({ host: "127.0.0.1", port: listener.port, allowHalfOpen: true }, () => client.end());
    client.on("close", () => closed.resolve());
    client.resume();
    await closed.promise;
    listener.stop(true);
  },
);

stillNeeded("Bun's rejects still ignores a promise's own then", "tests/support/rejection.ts", async () => {
  const rejectAtOnce = (_: unknown, onRejected: (error: Error) => void) => onRejected(new Error("rejected"));
  // oxlint-disable-next-line unicorn/no-thenable -- client libraries return such promises
  const lazy = Object.assign(Promise.resolve(), { then: rejectAtOnce });
  const check = async (): Promise<void> => expect(lazy).rejects.toThrow("rejected");
  expect(await check().catch((error: Error) => error.message)).toContain("Received promise that resolved");
});
