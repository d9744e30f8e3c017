import { expect, test } from "bun:test";
import { ListenError } from "../../src/runtime/listen.ts";
import { claimPort } from "../../src/supervisor/claim-port.ts";
import { findFreePort } from "../support/free-port.ts";

const host = "127.0.0.1";
const listen = (port: number, reusePort: boolean): Bun.Server<undefined> =>
  Bun.serve({ hostname: host, port, reusePort, fetch: () => new Response() });

test("a claimed port is refused to the next claim, though nobody listens there yet", () => {
  const port = findFreePort();
  const claim = claimPort(host, port);
  expect(() => claimPort(host, port)).toThrow(ListenError);
  expect(() => claimPort(host, port)).toThrow(`port ${port} on ${host} is in use by another program`);
  claim[Symbol.dispose]();
  claimPort(host, port)[Symbol.dispose]();
});

test("a claimed port is free for those that share it", () => {
  const port = findFreePort();
  using claims = new DisposableStack();
  claims.use(claimPort(host, port));
  const sharing = [listen(port, true), listen(port, true)];
  for (const server of sharing) void server.stop(true);
});

test.each([true, false])("a port on which somebody listens cannot be claimed (shared: %p)", async (shared) => {
  const port = findFreePort();
  const other = listen(port, shared);
  expect(() => claimPort(host, port)).toThrow(ListenError);
  await other.stop(true);
  claimPort(host, port)[Symbol.dispose]();
});

test("claims of other ports and addresses do not meet", () => {
  const port = findFreePort();
  using claims = new DisposableStack();
  claims.use(claimPort(host, port));
  claimPort("127.0.0.2", port)[Symbol.dispose]();
  claimPort(host, findFreePort())[Symbol.dispose]();
});

test("an address that is not ours cannot be claimed", () => {
  expect(() => claimPort("192.0.2.1", findFreePort())).toThrow(ListenError);
});
