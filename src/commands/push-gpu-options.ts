import type { Environment } from "../config/config.ts";
import { CommandError, readArguments } from "./command.ts";

export type PushGpuOptions = ReturnType<typeof readPushGpuOptions>;

/** The message never contains a key. */
const wrongUsage = (problem: string): CommandError => new CommandError(problem, 2);

const flags = {
  url: { type: "string" },
  key: { type: "string" },
  "key-file": { type: "string" },
  interval: { type: "string", default: "1" },
  "gpu-id-offset": { type: "string", default: "0" },
  host: { type: "string" },
  once: { type: "boolean", default: false },
  "dry-run": { type: "boolean", default: false },
} as const;

/** `hostName` is what the system calls this host. @throws CommandError */
export function readPushGpuOptions(
  args: string[],
  { env, readFile, hostName }: { env: Environment; readFile: (file: string) => string; hostName: string },
) {
  const { values } = readArguments("push-gpu", args, flags);
  return {
    once: values.once,
    intervalMs: Math.round(1000 * numberOf("--interval", values.interval, "number", 0.1, 3600)),
    gpuIdOffset: numberOf("--gpu-id-offset", values["gpu-id-offset"], "whole number", 0, 255),
    /** Names this host in the console. */
    host: values.host === undefined ? defaultHost(hostName) : checkedHost(values.host),
    /** Undefined if samples are only printed. */
    target: values["dry-run"] ? undefined : { url: endpointOf(values.url, env), key: keyOf(values, env, readFile) },
  };
}

function numberOf(flag: string, text: string, kind: "number" | "whole number", least: number, most: number): number {
  const value = (kind === "number" ? /^\d+(\.\d+)?$/ : /^\d+$/).test(text) ? Number(text) : NaN;
  if (value >= least && value <= most) return value;
  throw wrongUsage(`${flag}: ${JSON.stringify(text)} is not allowed; use a ${kind} from ${least} to ${most}`);
}

/** The server refuses a longer name. */
const maxHostLength = 64;

const defaultHost = (hostName: string): string | undefined =>
  Array.from(hostName.trim()).slice(0, maxHostLength).join("") || undefined;

function checkedHost(text: string): string {
  const host = text.trim();
  if (host !== "" && Array.from(host).length <= maxHostLength) return host;
  throw wrongUsage(`--host: its value is not allowed; use 1 to ${maxHostLength} characters`);
}

const endpoint = "/api/gpu-stats";

function endpointOf(flag: string | undefined, env: Environment): string {
  const text = flag ?? env["TOLLGATE_URL"] ?? "";
  if (text === "") throw wrongUsage("--url: missing; use the address of Tollgate's admin side");
  const url = URL.parse(text);
  // Not quoted: it may contain a password.
  if (url === null || !["http:", "https:"].includes(url.protocol) || url.username !== "" || url.password !== "") {
    throw wrongUsage("--url: its value is not allowed; use an http:// or https:// address without user and password");
  }
  const path = url.pathname.replace(/\/+$/, "");
  return url.origin + (path.endsWith(endpoint) ? path : path + endpoint);
}

function keyOf(
  values: { key?: string; "key-file"?: string },
  env: Environment,
  readFile: (file: string) => string,
): string {
  const file = values["key-file"];
  if (values.key !== undefined && file !== undefined)
    throw wrongUsage("--key: not allowed together with --key-file; use only one of them");
  const key = values.key ?? (file === undefined ? env["TOLLGATE_KEY"] : keyIn(file, readFile)) ?? "";
  if (key === "") throw wrongUsage("API key: missing; use --key-file FILE or set TOLLGATE_KEY");
  if (!/^[\x21-\x7e]{1,512}$/.test(key)) {
    throw wrongUsage("API key: not allowed; use 1 to 512 visible ASCII characters");
  }
  return key;
}

function keyIn(file: string, readFile: (file: string) => string): string {
  try {
    return readFile(file).trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw wrongUsage(`--key-file: cannot read ${JSON.stringify(file)} (${code ?? "unknown error"})`);
  }
}
