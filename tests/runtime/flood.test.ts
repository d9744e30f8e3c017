import { expect, test } from "bun:test";
import { join } from "node:path";
import { stillNeeded } from "./still-needed.ts";

const floodMs = 4000;

/** The longest tick of a program while 2,000 connections send it one request after the other. */
async function longestTickMs(how: "listen" | "bun"): Promise<number> {
  const program = Bun.spawn([process.execPath, join(import.meta.dir, "flooded-program.ts"), how], {
    stdin: "pipe",
    stdout: "pipe",
  });
  const output = program.stdout.getReader();
  const readLine = async () => Number(new TextDecoder().decode((await output.read()).value));
  const spec = {
    port: await readLine(),
    path: "/",
    headers: [],
    keys: ["none"],
    body: "{}",
    connections: 2000,
    requests: 1e9,
    perSecond: 0,
    stallMs: 0,
    limitMs: floodMs,
  };
  const flood = Bun.spawn([process.execPath, join(import.meta.dir, "../bench/load/main.ts")], {
    stdin: Buffer.from(JSON.stringify(spec)),
    stdout: "ignore",
  });
  await flood.exited;
  await program.stdin.end();
  return readLine();
}

test("a flood whose responses need no I/O does not stop the event loop", async () => {
  expect(await longestTickMs("listen")).toBeLessThan(floodMs / 2);
}, 30_000);

stillNeeded(
  "Bun still serves a flood in one tick while its connections are ready",
  "src/runtime/listen.ts",
  async () => {
    expect(await longestTickMs("bun")).toBeGreaterThan(floodMs / 2);
  },
);
