import { join } from "node:path";
import type { LoadResult, LoadSpec } from "./spec.ts";

const completionsPerSecond = 20;

export const chat = { model: "m", max_tokens: 1, messages: [{ role: "user", content: "Hi" }] };

/** Runs the load generator in a process of its own. */
export function startLoad(spec: LoadSpec): Promise<LoadResult> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "main.ts")], {
    stdin: Buffer.from(JSON.stringify(spec)),
    stdout: "pipe",
    stderr: "inherit",
  });
  return new Response(child.stdout).json() as Promise<LoadResult>;
}

/** Small completions at a steady rate, to be sent beside other load. */
export function completionsOf(
  { url, key }: { url: string; key: string },
  seconds: number,
  fields: Partial<LoadSpec> = {},
): LoadSpec {
  return {
    port: Number(new URL(url).port),
    path: "/v1/chat/completions",
    headers: [],
    keys: [key],
    body: JSON.stringify(chat),
    connections: 200,
    requests: seconds * completionsPerSecond,
    perSecond: completionsPerSecond,
    stallMs: 0,
    limitMs: seconds * 5000,
    ...fields,
  };
}

/** Starts a backend of the bench that prints its URL. */
export async function startBackend(file: "simulator.ts" | "sink.ts"): Promise<{ url: string; stop: () => void }> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "..", file)], { stdout: "pipe" });
  const { value: firstLine } = await child.stdout.getReader().read();
  const { url } = JSON.parse(new TextDecoder().decode(firstLine)) as { url: string };
  return { url, stop: () => child.kill() };
}

/** What makes a load a flood: requests one after the other, until the completions beside it are done. */
export const floodOf = (seconds: number) => ({ requests: 1e9, perSecond: 0, limitMs: (seconds + 3) * 1000 });
