import { existsSync } from "node:fs";
import { join } from "node:path";
import { pollUntil } from "../support/poll-until.ts";

/** A real backend on loopback, in its own process. */
export interface RealBackend extends AsyncDisposable {
  /** Everything it printed. */
  output: () => string;
  hasExited: () => boolean;
}

export type BackendName = "llama-cpp" | "vllm" | "litellm";

const root = join(import.meta.dir, "../..");
const programOf = (name: BackendName, program: string): string => join(root, ".venv", name, "bin", program);

/** Why the backend's tests are skipped; undefined if it is installed. TOLLGATE_NEEDS_LLAMA_CPP=1 makes it required. */
export function findWhyNot(name: BackendName): string | undefined {
  if (existsSync(join(root, ".venv", name, "installed.txt"))) return undefined;
  const whyNot = `${name} is not installed (tests/real/setup ${name}): its tests are skipped`;
  if (process.env[`TOLLGATE_NEEDS_${name.toUpperCase().replace("-", "_")}`] === "1") throw new Error(whyNot);
  process.stderr.write(`${whyNot}\n`);
  return whyNot;
}

/** @param command a program of the backend's virtual environment, and its arguments */
export function startBackend(name: BackendName, [program, ...args]: readonly [string, ...string[]]): RealBackend {
  const folder = join(import.meta.dir, name);
  const environment = { ...process.env, HF_HUB_OFFLINE: "1", VLLM_NO_USAGE_STATS: "1", VLLM_CPU_KVCACHE_SPACE: "1" };
  const child = Bun.spawn([programOf(name, program), ...args], {
    cwd: folder,
    env: { ...environment, LITELLM_LOCAL_MODEL_COST_MAP: "True", PYTHONDONTWRITEBYTECODE: "1" },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  const kill = (): void => child.kill("SIGKILL");
  process.on("exit", kill);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) void collect(stream, (more) => (text += more));
  return {
    output: () => text,
    hasExited: () => child.exitCode !== null,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.exited;
      process.off("exit", kill);
    },
  };
}

async function collect(stream: ReadableStream<Uint8Array>, add: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const bytes of stream) add(decoder.decode(bytes, { stream: true }));
}

/** Longer than vLLM takes to import on a busy machine. */
const startDeadlineMs = 600_000;

/** @throws Error with what the backend printed, if it exits or does not become ready */
export async function untilReady<T>({ output, hasExited }: RealBackend, condition: () => T | Promise<T>) {
  const ended = Promise.withResolvers<never>();
  const watch = setInterval(() => {
    if (hasExited()) ended.reject(new Error("It exited"));
  }, 100);
  try {
    return await Promise.race([pollUntil(condition, startDeadlineMs), ended.promise]);
  } catch (error) {
    throw new Error(`The backend did not start:\n${output()}`, { cause: error });
  } finally {
    clearInterval(watch);
  }
}

/** Unlabelled and labelled series of a metric are summed. */
export async function readMetric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const values = [...text.matchAll(/^([\w:]+)(?:\{.*\})? (\S+)$/gm)].filter(([, of]) => of === name);
  return values.reduce((sum, [, , value]) => sum + Number(value), 0);
}
