import { join } from "node:path";
import { logIn } from "../support/admin-client.ts";
import type { Program } from "../support/program.ts";
import { type Latency, percentilesIn, type Stretch } from "./phases.ts";

const run = (file: string, ...args: string[]) =>
  Bun.spawn([process.execPath, join(import.meta.dir, file), ...args], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });

/** Starts the probe. @returns what stops it and returns its measurements */
export function startProbe(url: string, key: string): () => Promise<Latency[]> {
  const child = run("probe.ts", url, key);
  return async () => {
    await child.stdin.end();
    return (await new Response(child.stdout).json()) as Latency[];
  };
}

export interface AttackReport {
  /** Requests of each kind. */
  sent: Record<string, number>;
  problems: string[];
}

/** Attacks in each attacked stretch, while the admin logs in once. */
export async function attackIn(
  stretches: readonly Stretch[],
  program: Program,
  hostileKey: string,
  password: string,
): Promise<AttackReport> {
  const report: AttackReport = { sent: {}, problems: [] };
  for (const { phase, from, to } of stretches) {
    if (phase !== "attacked") continue;
    await Bun.sleep(Math.max(0, from - Date.now()));
    const child = run("attack.ts", program.url, hostileKey, String(to - Date.now()));
    await Bun.sleep((to - from) / 2);
    // From the address that logged in before the attack.
    await logIn(program.adminUrl, "admin", password).catch((error: unknown) =>
      report.problems.push(`The admin could not log in during an attack: ${String(error)}`),
    );
    const sent = (await new Response(child.stdout).json()) as Record<string, number>;
    for (const [kind, count] of Object.entries(sent)) report.sent[kind] = (report.sent[kind] ?? 0) + count;
  }
  return report;
}

/** Of the p99 of completions during attacks to the p99 of the same load without them. */
const maxRatio = 3;
/** For a p99 that one slow completion does not decide. */
const minCompletions = 500;

/** Compares the probe's completions with and without attackers. */
export function compareLatencies(latencies: readonly Latency[], stretches: readonly Stretch[]) {
  const [calm, attacked] = [
    percentilesIn(latencies, stretches, "calm"),
    percentilesIn(latencies, stretches, "attacked"),
  ];
  const ratio = attacked.p99Ms / calm.p99Ms;
  const describe = ({ count, p50Ms, p99Ms }: typeof calm): string =>
    `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms of ${count}`;
  const summary = `Completions: ${describe(calm)} without attackers; ${describe(attacked)} with them; p99 ratio ${ratio.toFixed(2)}`;
  const isMeasured = Math.min(calm.count, attacked.count) >= minCompletions;
  const problems = isMeasured && ratio > maxRatio ? [`Attackers delay others: ${summary}`] : [];
  return { summary, problems };
}
