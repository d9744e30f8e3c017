import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { pushOnce, pushUntilStopped } from "../gpu-agent/agent.ts";
import { findGpuTool } from "../gpu-agent/gpu-tool.ts";
import { createLog } from "../log/log.ts";
import { CommandError, type CommandIo } from "./command.ts";
import { readPushGpuOptions } from "./push-gpu-options.ts";

export const summary = "send GPU samples of this host to a Tollgate";

export const chapter = "Watching";

export const help = `tollgate push-gpu --url URL [--key-file FILE] [OPTIONS]

Reads the GPUs of this host once a second and posts the samples to the admin side of a Tollgate.
Uses nvidia-smi for NVIDIA GPUs, and amd-smi for AMD GPUs.

  --url URL            address of the admin side, such as https://gate.example.com (or TOLLGATE_URL)
  --key-file FILE      file that contains an API key
  --key KEY            an API key; the process list shows it to every user of this host, so prefer
                       --key-file or the environment variable TOLLGATE_KEY
  --interval SECONDS   time between two samples, 0.1 to 3600 (default: 1)
  --gpu-id-offset N    added to each GPU's number, so that hosts use different ids from 0 to 255
                       (default: 0)
  --host NAME          name of this host in the console (default: its host name)
  --once               send one sample of every GPU, then exit
  --dry-run            print the samples instead of sending them; requires no URL and no key
  --help               print this help

Exit status: 0 after SIGTERM, SIGINT or SIGHUP, or if --once succeeded; 1 if no GPU can be read, or if
the server did not accept the samples of --once; 2 for wrong usage.
`;

/** @throws CommandError for wrong usage, or if there is no tool */
export async function run(args: string[], io: CommandIo): Promise<number> {
  const readFile = (file: string): string => readFileSync(file, "utf8");
  const options = readPushGpuOptions(args, { env: io.env, readFile, hostName: hostname() });
  const tool = findGpuTool(io.env);
  if (tool === undefined)
    throw new CommandError("PATH: contains no nvidia-smi or amd-smi; add one of them (handbook: GPUs)");
  // A reader that closes standard output (`| head -1`) stops the command; it is not an error.
  const outputClosed = new AbortController();
  io.stdout.on("error", () => outputClosed.abort());
  io.stderr.on("error", () => undefined);
  const signal = AbortSignal.any([io.signal, outputClosed.signal]);
  const log = createLog({ level: "info", format: "pretty", clock: Date.now, write: (line) => io.stderr.write(line) });
  // The tool does not need the key.
  const env = { ...io.env, TOLLGATE_KEY: undefined };
  const agent = { ...options, tool, log, signal, env, print: (line: string) => io.stdout.write(line) };
  if (options.once) return (await pushOnce(agent)) ? 0 : 1;
  await pushUntilStopped(agent);
  return 0;
}
