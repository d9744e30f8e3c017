import { describe, expect, test } from "bun:test";
import { connectTo } from "../../../src/proxy/upstream/connect-timeout.ts";
import { findFreePort } from "../../support/free-port.ts";

describe("a trial connection", () => {
  const deadline = (): AbortSignal => AbortSignal.timeout(20_000);

  test.each(["127.0.0.1", "[::1]"])("reaches a backend at %s", async (host) => {
    using backend = Bun.listen({ hostname: host.replace(/[[\]]/g, ""), port: 0, socket: { data: () => {} } });
    await connectTo(`http://${host}:${backend.port}/team`)(deadline());
  });

  test("fails where nobody listens", async () => {
    await expect(connectTo(`http://127.0.0.1:${findFreePort()}`)(deadline())).rejects.toThrow("ECONNREFUSED");
  });
});
