import { describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import { startSimulator } from "../support/simulator/simulator.ts";
import { findFreePort } from "../support/free-port.ts";
import { pollUntil } from "../support/poll-until.ts";
import { childrenOf, isRunning, listenersOn } from "../support/proc.ts";
import { logged, processCount, startProcesses, stream } from "../support/processes.ts";
import { runProgram, startProgram } from "../support/program.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());

describe("the parent", () => {
  test.each(["SIGTERM", "SIGINT"] as const)(
    "forwards %s, waits until all processes have drained, and exits with 0",
    async (signal) => {
      const program = await startProcesses(backend.url);
      const clients = await Promise.all(Array.from({ length: 6 }, () => stream(program, "gap=1500ms@3")));
      const stopped = program.stop(signal);
      for (const client of clients) expect(await client.ended()).toBe("complete");
      expect(await stopped).toBe(0);
      expect(logged(program).filter(({ level }) => level === "warn" || level === "error")).toEqual([]);
    },
  );

  test("ends everything immediately on a second signal", async () => {
    const program = await startProcesses(backend.url, { SHUTDOWN_GRACE: "600" });
    const children = childrenOf(program.pid);
    const client = await stream(program, "gap=forever@2");
    void program.stop();
    await pollUntil(() => children.some((pid) => !isRunning(pid)));
    expect(await program.stop()).toBe(1);
    expect(await client.ended()).not.toBe("complete");
    await pollUntil(() => !children.some(isRunning));
  });

  test("leaves no orphans if it is killed, and its children finish their requests", async () => {
    const program = await startProcesses(backend.url);
    const children = childrenOf(program.pid);
    const clients = await Promise.all(Array.from({ length: 6 }, () => stream(program, "gap=1000ms@3")));
    await program.stop("SIGKILL");
    for (const client of clients) expect(await client.ended()).toBe("complete");
    await pollUntil(() => !children.some(isRunning));
  });

  test.each(["1", "2"])("does not share its port with a second program with PROCESSES=%s", async (processes) => {
    const program = await startProcesses(backend.url);
    const { status, stderr } = await runProgram(["serve"], { PORT: new URL(program.url).port, PROCESSES: processes });
    expect(status).toBe(1);
    expect(stderr).toBe(`tollgate: port ${new URL(program.url).port} on 127.0.0.1 is in use by another program\n`);
    await program.stop();
  });

  test("keeps the admin side's address and port from a second copy that listens elsewhere for /v1", async () => {
    const environment = { ADMIN_HOST: "127.0.0.1", ADMIN_PORT: String(findFreePort()) };
    const program = await startProcesses(backend.url, { ...environment, HOST: "127.0.0.2" });
    const { status, stderr } = await runProgram(["serve"], {
      ...environment,
      HOST: "127.0.0.3",
      PORT: "0",
      PROCESSES: "2",
    });
    expect([status, stderr]).toEqual([1, expect.stringContaining(`port ${environment.ADMIN_PORT} on 127.0.0.1`)]);
    await program.stop();
  });

  test.each(["PORT", "ADMIN_PORT"])("reports in one line that %s is in use", async (variable) => {
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as { port: number };
    const { status, stderr } = await runProgram(["serve"], { PORT: "0", PROCESSES: "2", [variable]: String(port) });
    expect(status).toBe(1);
    expect(stderr).toBe(`tollgate: port ${port} on 127.0.0.1 is in use by another program\n`);
    other.close();
  });

  test("exits with the error of its first process", async () => {
    const { status, stderr } = await runProgram(["serve"], { PORT: "0", PROCESSES: "2", DATA_DIR: "/proc/nowhere" });
    expect(status).toBe(1);
    expect(stderr).toStartWith('tollgate: DATA_DIR "/proc/nowhere"');
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  test("gives all processes the ports of the first one, and prints one password", async () => {
    const program = await startProgram({
      PORT: "0",
      ADMIN_PORT: String(findFreePort()),
      PROCESSES: String(processCount),
      LOG_FORMAT: "json",
    });
    // It responds before its log has been read here.
    const listening = await pollUntil(() => logged(program).find(({ message }) => message === "Listening"));
    const proxy = String(listening["proxy"]);
    expect((await fetch(`${proxy}/models`)).status).toBe(401);
    await pollUntil(() => listenersOn(Number(new URL(proxy).port)) === processCount);
    expect(program.stdout().match(/password {3}\S+/g)).toHaveLength(1);
    await program.stop();
  });

  test("warns once, not once for each process, that the backend does not respond", async () => {
    const program = await startProcesses(backend.url, { PROXY_UPSTREAM_URL: "http://127.0.0.1:1" });
    await program.stop();
    const warnings = logged(program).filter(({ level }) => level === "warn");
    expect(warnings).toMatchObject([{ message: "Backend not reachable; requests fail until it is" }]);
  });
});

test("serve-process run by hand is an error that refers to PROCESSES", async () => {
  const { status, stderr } = await runProgram(["serve-process"]);
  expect(status).toBe(2);
  expect(stderr).toBe("tollgate: serve-process cannot be started directly; set PROCESSES instead\n");
});
