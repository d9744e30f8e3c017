import { expect, test } from "bun:test";
import { hostname } from "node:os";
import { createGpuHost, csvOfTwo, type GpuHost, isRunning, prints, samplesOfTwo } from "../gpu-agent/gpu-host.ts";
import { type SampleReceiver, startSampleReceiver } from "../gpu-agent/sample-receiver.ts";
import { commandLine } from "../support/program.ts";

const key = "3f2a90d1c5e84b7f9c1b";

const start = (host: GpuHost, args: string[], env: Record<string, string> = {}) =>
  Bun.spawn(commandLine(["push-gpu", ...args]), {
    env: { ...host.env, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });

async function runToEnd(host: GpuHost, args: string[], env: Record<string, string> = {}) {
  const child = start(host, args, env);
  const [stdout, stderr, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { stdout, stderr, status };
}

const pushTo = (receiver: SampleReceiver, ...more: string[]) => ["--url", receiver.url, "--interval", "0.1", ...more];

async function areAllDead(host: GpuHost): Promise<boolean> {
  return (await host.pids()).every((pid) => !isRunning(pid));
}

test("on SIGINT exits with status 0 and leaves no tool running", async () => {
  await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
  await using receiver = startSampleReceiver();
  const child = start(host, pushTo(receiver), { TOLLGATE_KEY: key });
  await receiver.received(3);
  child.kill("SIGINT");
  expect(await child.exited).toBe(0);
  expect(child.signalCode).toBeNull();
  expect(await areAllDead(host)).toBeTrue();
  expect(await host.starts()).toHaveLength(1);
});

test("--once --dry-run prints the body that would be sent", async () => {
  await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
  const { stdout, stderr, status } = await runToEnd(host, [
    "--once",
    "--dry-run",
    "--gpu-id-offset",
    "8",
    "--host",
    "b",
  ]);
  expect(JSON.parse(stdout)).toEqual({
    host: "b",
    gpus: samplesOfTwo.map((sample) => ({ ...sample, gpu_id: sample.gpu_id + 8 })),
  });
  expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
});

test("--once sends one sample set and exits", async () => {
  await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
  await using receiver = startSampleReceiver();
  const { status } = await runToEnd(host, pushTo(receiver, "--once", "--key", key));
  expect(status).toBe(0);
  expect(receiver.posts.map(({ body }) => body)).toEqual([{ host: hostname(), gpus: samplesOfTwo }]);
});

test("--once exits with status 1 if the key is rejected", async () => {
  await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
  await using receiver = startSampleReceiver(() => new Response("", { status: 401 }));
  const { status, stderr } = await runToEnd(host, pushTo(receiver, "--once", "--key", key));
  expect(status).toBe(1);
  expect(stderr).toContain("the API key is unknown, inactive or expired (401)");
  expect(stderr).not.toContain(key);
});

test("stops itself and the tool when the reader of standard output leaves", async () => {
  await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
  const child = start(host, ["--dry-run", "--interval", "0.1"]);
  const reader = child.stdout.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toContain('"gpus":[{');
  await reader.cancel();
  expect(await child.exited).toBe(0);
  expect(await areAllDead(host)).toBeTrue();
});

test("the help lists every option", async () => {
  await using host = await createGpuHost({});
  const help = await runToEnd(host, ["--help"]);
  for (const flag of ["url", "key", "key-file", "interval", "gpu-id-offset", "host", "once", "dry-run"]) {
    expect(help.stdout).toContain(`--${flag}`);
  }
  expect(help.status).toBe(0);
});
