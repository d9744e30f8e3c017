import { expect, test } from "bun:test";
import { connect } from "node:net";
import { startBlackhole } from "./blackhole.ts";

test("a connection attempt is neither accepted nor refused, and is refused after the blackhole is closed", async () => {
  const blackhole = await startBlackhole();
  const attempt = () => {
    const socket = connect(blackhole.port, "127.0.0.1");
    const outcome = new Promise<string>((resolve) => {
      socket.on("connect", () => resolve("accepted"));
      socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "failed"));
    });
    return { socket, outcome };
  };
  const { socket, outcome } = attempt();
  // Nothing ever happens, so there is no event to wait for.
  expect(await Promise.race([outcome, Bun.sleep(300).then(() => "nothing")])).toBe("nothing");
  socket.destroy();
  blackhole[Symbol.dispose]();
  expect(await attempt().outcome).toBe("ECONNREFUSED");
});
