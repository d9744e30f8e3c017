/**
 * Rewrites a hostile body in a process of its own and prints what that took as JSON.
 * Run: `bun tests/support/measure-rewrite.ts NAME BYTES`
 */
import { createPortions } from "../../src/proxy/json/read.ts";
import { hostileBodies } from "../fixtures/hostile-bodies.ts";
import { familyRules, rewriteRules, rewriterOf } from "./rewrite-rules.ts";

export interface RewriteMeasure {
  bodyBytes: number;
  /** The process's largest memory between two portions, less what it had before the body. */
  peakBytes: number;
  portions: number;
  /** In time of the processor. */
  longestSliceMs: number;
  tookMs: number;
}

async function measureRewrite(name: string, length: number): Promise<RewriteMeasure> {
  const hostile = hostileBodies.find((body) => body.name === name);
  if (hostile === undefined) throw new Error(`No hostile body is called ${name}`);
  const rules = rewriteRules({ ...familyRules, hanGuard: true, forceStreamUsage: "continuous" });
  const shared = createPortions(2);
  let portions = 0;
  let sliceStart = process.threadCpuUsage();
  let longestSliceMs = 0;
  let peakRss = 0;
  const waitForTurn = async (): Promise<void> => {
    portions += 1;
    const { user, system } = process.threadCpuUsage(sliceStart);
    longestSliceMs = Math.max(longestSliceMs, (user + system) / 1000);
    peakRss = Math.max(peakRss, process.memoryUsage.rss());
    await shared.waitForTurn();
    sliceStart = process.threadCpuUsage();
  };

  const rssBefore = process.memoryUsage.rss();
  const bytes = hostile.create(length);
  const startedAt = shared.now();
  sliceStart = process.threadCpuUsage();
  await rewriterOf(rules, { ...shared, waitForTurn })("/v1/chat/completions", bytes);
  const tookMs = shared.now() - startedAt;
  // Also at the end, when the edited body has all its memory.
  await waitForTurn();
  return {
    bodyBytes: bytes.length,
    peakBytes: peakRss - rssBefore,
    portions,
    longestSliceMs,
    tookMs,
  };
}

const [, , name = "", length = ""] = process.argv;
process.stdout.write(JSON.stringify(await measureRewrite(name, Number(length))));
