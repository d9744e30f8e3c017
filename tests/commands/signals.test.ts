import { describe, expect, test } from "bun:test";
import { commandLine, startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";

/** Accepts connections and sends nothing. */
function startSilentServer() {
  const connected = Promise.withResolvers<void>();
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { open: () => connected.resolve(), data: () => undefined },
  });
  return {
    address: `127.0.0.1:${listener.port}`,
    connected: connected.promise,
    [Symbol.dispose]: () => listener.stop(true),
  };
}

const start = (args: string[], dataDir: string, environment: Record<string, string> = {}) =>
  Bun.spawn(commandLine(args), {
    cwd: dataDir,
    env: { PATH: process.env["PATH"] ?? "", DATA_DIR: dataDir, ...environment },
    // Open until the test ends.
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });

/** Shells show it as the status 128 plus the signal's number. */
async function endOf(child: ReturnType<typeof start>, signal: NodeJS.Signals) {
  const sentAt = performance.now();
  child.kill(signal);
  await child.exited;
  return { signal: child.signalCode, isSoon: performance.now() - sentAt < 3000 };
}

describe.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("the first %s ends at once", (signal) => {
  test("a check that waits for the backend", async () => {
    using backend = startSilentServer();
    using folder = createTempFolder();
    const child = start(["check"], folder.path, { PROXY_UPSTREAM_URL: `http://${backend.address}` });
    await backend.connected;
    expect(await endOf(child, signal)).toEqual({ signal, isSoon: true });
    expect(await new Response(child.stdout).text()).not.toContain("backend ");
  });

  test("a check that waits for PostgreSQL", async () => {
    using database = startSilentServer();
    using folder = createTempFolder();
    const child = start(["check"], folder.path, {
      DATABASE_URL: `postgres://u:p@${database.address}/d`,
      SECRET_KEY: "0123456789abcdef",
    });
    await database.connected;
    expect(await endOf(child, signal)).toEqual({ signal, isSoon: true });
  });

  test("a check of a server that does not respond", async () => {
    using server = startSilentServer();
    using folder = createTempFolder();
    const child = start(["check", "--quick"], folder.path, { PORT: server.address.split(":")[1] ?? "" });
    await server.connected;
    expect(await endOf(child, signal)).toEqual({ signal, isSoon: true });
  });

  test("commands that read standard input", async () => {
    using folder = createTempFolder();
    await (await startProgram({ DATA_DIR: folder.path })).stop();
    const commands = [
      ["reset-password", "--password-stdin"],
      ["move-to", "--url-stdin"],
    ];
    const children = commands.map((args) => start(args, folder.path));
    // They print nothing before they read.
    await Bun.sleep(1000);
    const ends = await Promise.all(children.map((child) => endOf(child, signal)));
    expect(ends).toEqual(commands.map(() => ({ signal, isSoon: true })));
  });
});
