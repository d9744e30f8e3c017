import { expect, test } from "bun:test";
import { connect } from "node:net";
import { countConnecting } from "../../../src/proxy/upstream/connections.ts";
import { startBlackhole } from "../../support/blackhole.ts";
import { pollUntil } from "../../support/poll-until.ts";

test("the sockets of this process that connect to a port are counted, while they do", async () => {
  using blackhole = await startBlackhole();
  const { port } = blackhole;
  // The blackhole's filler is connected.
  expect(await countConnecting(port)).toBe(0);
  const sockets = Array.from({ length: 3 }, () => connect(port, "127.0.0.1"));
  await pollUntil(async () => (await countConnecting(port)) === 3);
  expect(await countConnecting(port + 1)).toBe(0);
  for (const socket of sockets) socket.destroy();
  await pollUntil(async () => (await countConnecting(port)) === 0);
});

test("sockets of other processes do not count", async () => {
  using blackhole = await startBlackhole();
  const { port } = blackhole;
  const script = `require("node:net").connect(${port}, "127.0.0.1"); console.log("begun")`;
  const other = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  await other.stdout.getReader().read();
  const own = connect(port, "127.0.0.1");
  expect(await pollUntil(async () => (await countConnecting(port)) || undefined)).toBe(1);
  own.destroy();
  other.kill();
});

test("a request that connects to several addresses of the backend counts once", async () => {
  using first = await startBlackhole();
  const { port } = first;
  using second = await startBlackhole({ host: "127.0.0.2", port });
  expect(second.port).toBe(port);
  const sockets = ["127.0.0.1", "127.0.0.2", "127.0.0.2"].map((host) => connect(port, host));
  await pollUntil(async () => (await countConnecting(port)) === 2);
  expect(await countConnecting(port)).toBe(2);
  for (const socket of sockets) socket.destroy();
});

test.each([
  ["127.0.0.1", 1],
  ["localhost", 1],
  ["::ffff:127.0.0.1", 0],
  ["127.0.0.2", 0],
  ["::1", 0],
])("of those to 127.0.0.1, %s has %i", async (host, expected) => {
  using blackhole = await startBlackhole();
  const { port } = blackhole;
  const socket = connect(port, "127.0.0.1");
  await pollUntil(async () => (await countConnecting(port)) === 1);
  expect(await countConnecting(port, host)).toBe(expected);
  socket.destroy();
});
