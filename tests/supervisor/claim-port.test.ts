import { expect, test } from "bun:test";
import { ListenError } from "../../src/runtime/listen.ts";
import { claimPort } from "../../src/supervisor/supervisor.ts";
import { findFreePort } from "../support/free-port.ts";

const host = "127.0.0.1";
const listen = (port: number, reusePort: boolean): Bun.Server<undefined> =>
  Bun.serve({ hostname: host, port, reusePort, fetch: () => new Response() });

test("refuses a second claim of a port before anything listens on it", () => {
  const port = findFreePort();
  const claim = claimPort(host, port);
  expect(() => claimPort(host, port)).toThrow(ListenError);
  expect(() => claimPort(host, port)).toThrow(`port ${port} on ${host} is in use by another program`);
  claim[Symbol.dispose]();
  claimPort(host, port)[Symbol.dispose]();
});

test.each([true, false])("refuses to claim a port that another program listens on (shared: %p)", async (shared) => {
  const port = findFreePort();
  const other = listen(port, shared);
  expect(() => claimPort(host, port)).toThrow(ListenError);
  await other.stop(true);
  claimPort(host, port)[Symbol.dispose]();
});

test("refuses to claim an address that this machine does not have", () => {
  expect(() => claimPort("192.0.2.1", findFreePort())).toThrow(ListenError);
});
