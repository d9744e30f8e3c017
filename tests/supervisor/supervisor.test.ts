import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Environment, readConfig } from "../../src/config/config.ts";
import { createLog } from "../../src/log/log.ts";
import { bunSettings } from "../../src/runtime/bun-settings.ts";
import { catalogFromEnvironment, fixedCatalog } from "../../src/config/catalog.ts";
import { superviseProcesses } from "../../src/supervisor/supervisor.ts";
import { findFreePort } from "../support/free-port.ts";
import { childrenOf, listenersOn } from "../support/proc.ts";
import { commandLine } from "../support/program.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";
import { pollUntil } from "../support/poll-until.ts";

type Line = Readonly<Record<string, unknown>>;

describe.skipIf(process.platform !== "linux")("the supervisor", () => {
  const count = 2;
  let folder: TempFolder;
  let lines: Line[];
  let port: number;
  let own: () => number[];
  let ending: AbortController;
  let ended: Promise<number>;
  let expectedStatus: number;

  const start = (environment: Environment = {}, maxMissed = 60): void => {
    const env = {
      PORT: String(port),
      DATA_DIR: folder.path,
      ADMIN_PASSWORD: "password",
      LOG_LEVEL: "error",
      // Without them the child replaces itself with execve and loses the channel to its parent.
      ...bunSettings(process.constrainedMemory()),
      ...environment,
    };
    ended = superviseProcesses({
      catalog: fixedCatalog(catalogFromEnvironment(readConfig(env, false))),
      config: readConfig(env, false),
      probe: async () => ({ ok: true }),
      count,
      command: commandLine(["serve-process"]),
      env,
      log: createLog({ level: "info", format: "json", clock: Date.now, write: (line) => lines.push(JSON.parse(line)) }),
      signal: ending.signal,
      heartbeatLimits: { intervalMs: 50, maxMissed },
    });
  };
  const supervise = async (environment?: Environment, maxMissed?: number): Promise<void> => {
    start(environment, maxMissed);
    await pollUntil(() => listenersOn(port) === count);
  };

  beforeEach(() => {
    folder = createTempFolder();
    [lines, port, ending, expectedStatus] = [[], findFreePort(), new AbortController(), 0];
    const before = new Set(childrenOf(process.pid));
    own = () => childrenOf(process.pid).filter((pid) => !before.has(pid));
  });
  afterEach(async () => {
    ending.abort();
    expect(await ended).toBe(expectedStatus);
    folder.remove();
  });

  test("kills a process that hangs and starts a replacement", async () => {
    await supervise();
    const [unresponsive = 0, healthy] = own();
    process.kill(unresponsive, "SIGSTOP");
    await pollUntil(() => lines.some(({ message }) => message === "Worker process exited; starting a replacement"));
    await pollUntil(() => own().length === count && listenersOn(port) === count);
    expect(lines.filter(({ level }) => level === "error")).toMatchObject([
      { message: "Worker process unresponsive; killing it", child: unresponsive },
    ]);
    expect(own()).toContain(healthy ?? 0);
    expect(own()).not.toContain(unresponsive);
  });

  test("leaves a process alone that was stopped for a while", async () => {
    await supervise();
    const before = own();
    for (let round = 0; round < 5; round++) {
      for (const pid of before) process.kill(pid, "SIGSTOP");
      // The pause is what is simulated: several missed pings, fewer than the limit.
      await Bun.sleep(400);
      for (const pid of before) process.kill(pid, "SIGCONT");
      await Bun.sleep(400);
    }
    expect(own()).toEqual(before);
    expect(lines.filter(({ level }) => level !== "info")).toEqual([]);
  });

  test("ends in time, with status 1, though one process is stopped and does not hear of it", async () => {
    // Never unresponsive: only the end of the grace may kill it.
    await supervise({ SHUTDOWN_GRACE: "0.2" }, 1_000_000);
    const [stopped = 0, healthy = 0] = own();
    process.kill(stopped, "SIGSTOP");
    const started = performance.now();
    ending.abort();
    await pollUntil(() => !own().includes(healthy));
    expect(own()).toContain(stopped);
    // Its counts may be lost.
    expectedStatus = 1;
    expect(await ended).toBe(1);
    expect(performance.now() - started).toBeWithin(15_000, 50_000);
    expect(own()).toEqual([]);
  });

  test("stops its first process if it is stopped while that one starts, and starts no other", async () => {
    start();
    ending.abort();
    await pollUntil(() => own().length === 1);
    expect(await ended).toBe(0);
    expect(own()).toEqual([]);
    expect(lines.map(({ message }) => message)).toEqual(["Listening", "All worker processes exited"]);
  });

  test("starts nothing if it was stopped before", async () => {
    ending.abort();
    start();
    expect(await ended).toBe(0);
    expect([own(), lines]).toEqual([[], []]);
  });

  test("gives all processes one admin port if the kernel chooses it", async () => {
    await supervise({ ADMIN_PORT: "0" });
    const listening = await pollUntil(() => lines.find(({ message }) => message === "Listening"));
    const adminPort = Number(new URL(String(listening["console"])).port);
    expect(adminPort).not.toBe(port);
    await pollUntil(() => listenersOn(adminPort) === count);
    const statuses = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const headers = { connection: "close" };
        return (await fetch(`http://127.0.0.1:${adminPort}/healthz`, { headers })).status;
      }),
    );
    expect(new Set(statuses)).toEqual(new Set([200]));
  });
});
