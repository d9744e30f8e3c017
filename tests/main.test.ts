import { describe, expect, test } from "bun:test";
import { startSimulator } from "./support/simulator/simulator.ts";
import { findFreePort } from "./support/free-port.ts";
import { type ProgramWithKey, startProgramWithKey } from "./support/program-with-key.ts";
import { childrenOf } from "./support/proc.ts";
import { metricsToken, scrape } from "./support/processes.ts";
import { commandLine } from "./support/program.ts";
import { connectRaw, type RawClient } from "./support/raw-client.ts";
import { createTempFolder } from "./support/temp-folder.ts";
import { pollUntil } from "./support/poll-until.ts";
import { shared } from "./support/shared.ts";

const backend = shared(() => startSimulator());

async function stream(program: ProgramWithKey, script: string): Promise<RawClient> {
  const client = await program.postStream(script);
  await client.nextEvent();
  return client;
}

test("the sources start as the binary does, also the processes of PROCESSES=2", async () => {
  using folder = createTempFolder();
  const port = findFreePort();
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/../src/main.ts`, "serve"], {
    cwd: folder.path,
    env: {
      PATH: process.env["PATH"] ?? "",
      DATA_DIR: folder.path,
      PORT: String(port),
      ADMIN_PASSWORD: "password",
      METRICS_TOKEN: metricsToken,
      PROCESSES: "2",
    },
    stdio: ["ignore", "ignore", "ignore"],
  });
  using cleanup = new DisposableStack();
  cleanup.defer(() => child.kill("SIGKILL"));
  const adminUrl = `http://127.0.0.1:${port}`;
  await pollUntil(async () => (await scrape({ adminUrl })).tollgate_processes === 2);
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
});

describe("SIGHUP", () => {
  test.each(["1", "2"])("drains like SIGTERM with PROCESSES=%s, also if it arrives twice", async (processes) => {
    const program = await startProgramWithKey(backend.url, { PROCESSES: processes });
    const client = await stream(program, "gap=1500ms@3");
    void program.stop("SIGHUP");
    await pollUntil(() =>
      connectRaw(program.url).then(
        (other) => other.close(),
        () => true,
      ),
    );
    // A terminal that closes sends it to the shell and to its jobs, and the shell sends it to its jobs too.
    const stopped = program.stop("SIGHUP");
    expect(await client.ended()).toBe("complete");
    expect(await client.text()).toEndWith("data: [DONE]\n\n");
    expect(await stopped).toBe(0);
  });

  test.skipIf(process.platform !== "linux")("does not end a process that nohup started", async () => {
    using folder = createTempFolder();
    const port = findFreePort();
    const child = Bun.spawn(["nohup", ...commandLine(["serve"])], {
      env: { PATH: process.env["PATH"] ?? "", DATA_DIR: folder.path, PORT: String(port), ADMIN_PASSWORD: "password" },
      stdio: ["ignore", "ignore", "ignore"],
    });
    const isUp = async (): Promise<boolean> => {
      const headers = { connection: "close" };
      return (await fetch(`http://127.0.0.1:${port}/healthz`, { headers }).catch(() => undefined))?.ok === true;
    };
    await pollUntil(isUp);
    child.kill("SIGHUP");
    for (let time = 0; time < 5; time++) expect(await isUp()).toBeTrue();
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
  });

  test.skipIf(process.platform !== "linux")(
    "ends none of the processes that nohup started with PROCESSES=2",
    async () => {
      using folder = createTempFolder();
      const port = findFreePort();
      // In a process group of its own.
      const child = Bun.spawn(["setsid", "nohup", ...commandLine(["serve"])], {
        env: {
          PATH: process.env["PATH"] ?? "",
          DATA_DIR: folder.path,
          PORT: String(port),
          ADMIN_PASSWORD: "password",
          METRICS_TOKEN: metricsToken,
          PROCESSES: "2",
        },
        stdio: ["ignore", "ignore", "ignore"],
      });
      using cleanup = new DisposableStack();
      cleanup.defer(() => void (child.exitCode === null && process.kill(-child.pid, "SIGKILL")));
      const adminUrl = `http://127.0.0.1:${port}`;
      await pollUntil(async () => (await scrape({ adminUrl })).tollgate_processes === 2);
      const before = childrenOf(child.pid);
      expect(before).toHaveLength(2);
      process.kill(-child.pid, "SIGHUP");
      // A process that obeyed it would be replaced sooner: it has no response to wait for.
      await Bun.sleep(1500);
      expect(childrenOf(child.pid)).toEqual(before);
      expect((await scrape({ adminUrl })).tollgate_processes).toBe(2);
      child.kill("SIGTERM");
      expect(await child.exited).toBe(0);
    },
  );
});
