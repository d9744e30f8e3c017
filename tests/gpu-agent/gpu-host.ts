import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findGpuTool } from "../../src/gpu-agent/gpu-tool.ts";
import { readGpus, type ReadGpusOptions } from "../../src/gpu-agent/read-gpus.ts";
import { createBackoff } from "../../src/time/wait.ts";

/** Seven columns in the format of `nvidia-smi --format=csv,noheader,nounits`. */
export const csvOfTwo = `0, NVIDIA H100 80GB HBM3, 112.35, 41, 65536, 81559, 97
1, NVIDIA H100 80GB HBM3, 98.10, 39, 512, 81559, 0`;

/** `csvOfTwo` as the server receives it. */
export const samplesOfTwo = [
  {
    gpu_id: 0,
    name: "NVIDIA H100 80GB HBM3",
    power_draw_w: 112.35,
    temp_c: 41,
    memory_used_mb: 65536,
    memory_total_mb: 81559,
    utilization_pct: 97,
  },
  {
    gpu_id: 1,
    name: "NVIDIA H100 80GB HBM3",
    power_draw_w: 98.1,
    temp_c: 39,
    memory_used_mb: 512,
    memory_total_mb: 81559,
    utilization_pct: 0,
  },
];

/** A tool that prints these lines. */
export const prints = (csv: string) => `printf '%s\\n' "${csv}"`;

/**
 * Like the real nvidia-smi, the fake repeats its commands until it is killed if it gets `-lms`, but in rounds of 50 ms. An
 * `exit` ends it in the first round.
 */
const loopOfNvidiaSmi = `case " $* " in *" -lms "*) while sleep 0.05; do round "$@"; done ;; esac`;

export interface GpuHost extends AsyncDisposable {
  folder: string;
  env: Record<string, string>;
  /** The arguments of each start. */
  starts(): Promise<string[]>;
  /** The process id of each start. */
  pids(): Promise<number[]>;
}

/**
 * A host whose PATH begins with fakes of the vendors' tools.
 * @param tools shell commands by tool; `$starts` is the number of starts, `$folder` the host's folder
 */
export async function createGpuHost(tools: Record<string, string>): Promise<GpuHost> {
  const folder = await mkdtemp(join(tmpdir(), "tollgate-gpu-host-"));
  await mkdir(join(folder, "bin"));
  await Bun.write(join(folder, "starts"), "");
  for (const [name, commands] of Object.entries(tools)) {
    const path = join(folder, "bin", name);
    await Bun.write(path, scriptOf(folder, commands, name === "nvidia-smi" ? loopOfNvidiaSmi : ""));
    await chmod(path, 0o755);
  }
  const lines = async () => (await Bun.file(join(folder, "starts")).text()).split("\n").slice(0, -1);
  return {
    folder,
    env: { PATH: `${folder}/bin:${process.env["PATH"]}`, TMPDIR: folder },
    starts: async () => (await lines()).map((line) => line.slice(line.indexOf(" ") + 1)),
    pids: async () => (await lines()).map((line) => parseInt(line, 10)),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

const scriptOf = (folder: string, commands: string, loop: string) => `#!/bin/sh
folder=${folder}
echo "$$ $*" >>$folder/starts
starts=$(wc -l <$folder/starts)
round() {
  :
  ${commands}
}
round "$@"
${loop}
`;

export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Reads the GPUs of a host with the tool that it has, until the signal aborts. */
export function readGpusOf(host: GpuHost, signal: AbortSignal, options: Partial<ReadGpusOptions>): Promise<void> {
  const tool = findGpuTool(host.env);
  if (tool === undefined) throw new Error("no tool found");
  return readGpus({
    tool,
    env: host.env,
    signal,
    intervalMs: 60_000,
    outputTimeoutMs: 20_000,
    gpuIdOffset: 0,
    backoff: createBackoff(1, 4),
    logOnChange: () => undefined,
    onToolMessage: () => undefined,
    onSamples: () => undefined,
    ...options,
  });
}
