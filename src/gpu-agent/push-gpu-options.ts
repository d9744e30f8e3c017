import { parseArgs } from "node:util";
import type { Environment } from "../config/config.ts";
import type { PushTarget } from "./post-result.ts";

export interface PushGpuOptions {
  help: boolean;
  script: boolean;
  once: boolean;
  intervalMs: number;
  gpuIdOffset: number;
  /** Names this host in the console. */
  host: string | undefined;
  /** Undefined if samples are only printed. */
  target: PushTarget | undefined;
}

/** Wrong usage. The message is one line for the operator, and never contains a key. */
export class UsageError extends Error {
  override name = "UsageError";
}

const flags = {
  url: { type: "string" },
  key: { type: "string" },
  "key-file": { type: "string" },
  interval: { type: "string", default: "1" },
  "gpu-id-offset": { type: "string", default: "0" },
  host: { type: "string" },
  once: { type: "boolean", default: false },
  "dry-run": { type: "boolean", default: false },
  script: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

/** @throws UsageError */
export function readPushGpuOptions(
  args: string[],
  {
    env,
    readFile,
    hostName,
  }: {
    env: Environment;
    readFile: (file: string) => string;
    /** The name by which the system knows this host. */
    hostName: string;
  },
): PushGpuOptions {
  const values = parseFlags(args);
  const onlyPrints = values.help || values.script || values["dry-run"];
  return {
    help: values.help,
    script: values.script,
    once: values.once,
    intervalMs: Math.round(1000 * numberOf("--interval", values.interval, 0.1, 3600)),
    gpuIdOffset: wholeNumberOf("--gpu-id-offset", values["gpu-id-offset"], 0, 255),
    host: values.host === undefined ? defaultHost(hostName) : checkedHost(values.host),
    target: onlyPrints ? undefined : { url: endpointOf(values.url, env), key: keyOf(values, env, readFile) },
  };
}

function parseFlags(args: string[]) {
  try {
    return parseArgs({ args, options: flags, strict: true, allowPositionals: false }).values;
  } catch (error) {
    // The parser quotes a stray argument, which may be a key without its option.
    const stray = error instanceof Error && "code" in error && error.code === "ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL";
    const message = error instanceof Error && !stray ? (error.message.split(/\.\s/)[0] ?? "") : "unexpected argument";
    throw new UsageError(`${message}; see tollgate push-gpu --help`);
  }
}

function numberOf(flag: string, text: string, least: number, most: number): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (value >= least && value <= most) return value;
  throw new UsageError(`${flag}: ${JSON.stringify(text)} is not allowed; use a number from ${least} to ${most}`);
}

function wholeNumberOf(flag: string, text: string, least: number, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  if (value >= least && value <= most) return value;
  throw new UsageError(`${flag}: ${JSON.stringify(text)} is not allowed; use a whole number from ${least} to ${most}`);
}

/** The server refuses a longer name. */
const maxHostLength = 64;

const defaultHost = (hostName: string): string | undefined =>
  Array.from(hostName.trim()).slice(0, maxHostLength).join("") || undefined;

function checkedHost(text: string): string {
  const host = text.trim();
  if (host !== "" && Array.from(host).length <= maxHostLength) return host;
  throw new UsageError(`--host: its value is not allowed; use 1 to ${maxHostLength} characters`);
}

const endpoint = "/api/gpu-stats";

function endpointOf(flag: string | undefined, env: Environment): string {
  const text = flag ?? env["TOLLGATE_URL"] ?? "";
  if (text === "") throw new UsageError("--url: missing; use the address of Tollgate's admin side");
  const url = URL.parse(text);
  // Not quoted: it may contain a password.
  if (url === null || !["http:", "https:"].includes(url.protocol) || url.username !== "" || url.password !== "") {
    throw new UsageError(
      "--url: its value is not allowed; use an http:// or https:// address without user and password",
    );
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
    throw new UsageError("--key: not allowed together with --key-file; use only one of them");
  const key = values.key ?? (file === undefined ? env["TOLLGATE_KEY"] : keyIn(file, readFile)) ?? "";
  if (key === "") throw new UsageError("API key: missing; use --key-file FILE or set TOLLGATE_KEY");
  if (!/^[\x21-\x7e]{1,512}$/.test(key)) {
    throw new UsageError("API key: not allowed; use 1 to 512 visible ASCII characters");
  }
  return key;
}

function keyIn(file: string, readFile: (file: string) => string): string {
  try {
    return readFile(file).trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError(`--key-file: cannot read ${JSON.stringify(file)} (${code ?? "unknown error"})`);
  }
}
