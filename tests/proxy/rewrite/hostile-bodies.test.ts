import { describe, expect, test } from "bun:test";
import { getEndpoint } from "../../../src/proxy/rewrite/endpoint.ts";
import { createRequestBody, needsOf } from "../../../src/proxy/rewrite/watched-members.ts";
import { rewriteInSteps } from "../../../src/proxy/rewrite/rewrite.ts";
import { type HostileBody, hostileBodies } from "../../fixtures/hostile-bodies.ts";
import type { RewriteMeasure } from "../../support/measure-rewrite.ts";
import { familyRules, rewriteRules, rulesOf } from "../../support/rewrite-rules.ts";

const everyRule = rulesOf(rewriteRules({ ...familyRules, hanGuard: true, forceStreamUsage: "continuous" }));
const mebibyte = 1024 * 1024;

/** @returns how much time of the processor each step took: the machine may be busy */
function runSteps({ outcome }: HostileBody, bytes: Uint8Array<ArrayBuffer>): number[] {
  const endpoint = getEndpoint("/v1/chat/completions");
  const steps = rewriteInSteps(endpoint, bytes, createRequestBody(endpoint, needsOf(everyRule)), everyRule);
  const tookMs: number[] = [];
  for (;;) {
    const before = process.threadCpuUsage();
    const step = steps.next();
    const { user, system } = process.threadCpuUsage(before);
    tookMs.push((user + system) / 1000);
    if (step.done !== true) continue;
    const { value } = step;
    expect("refused" in value ? "refused" : value.pieces === undefined ? "unchanged" : "edited").toBe(outcome);
    return tookMs;
  }
}

describe("a hostile body is read in short steps", () => {
  test.each(hostileBodies)("of $name", (body) => {
    const bytes = body.create(4 * mebibyte);
    // The best of three runs for each step: the first is not compiled, and any may have to collect garbage.
    const runs = Array.from({ length: 3 }, () => runSteps(body, bytes));
    const [steps = []] = runs;
    const longestMs = Math.max(...steps.map((_, index) => Math.min(...runs.map((run) => run[index] ?? 0))));
    // For each 8 KiB read and each 64 KiB counted.
    expect(steps.length).toBeWithin(4 * 128, 4 * (128 + 16) + 20);
    expect(longestMs).toBeLessThan(5);
  });
});

describe("a hostile body of 32 MiB needs little memory besides its own", () => {
  const names = [
    "empty messages",
    "messages",
    "text parts",
    "model names",
    "small members",
    "nested arrays",
    "a long text",
  ];

  function measureOf(name: string): RewriteMeasure {
    const script = new URL("../../support/measure-rewrite.ts", import.meta.url).pathname;
    const { stdout } = Bun.spawnSync([process.execPath, script, name, String(32 * mebibyte)]);
    return JSON.parse(stdout.toString()) as RewriteMeasure;
  }

  test.each(names)("of %s", (name) => {
    let least = Infinity;
    // The garbage of small members is 2.4 to 3.6 times the body, and more where the collector waits for a busy CPU: that is
    // not the body's, so the least of three counts.
    for (let times = 0; times < 3 && least >= 4; times++) {
      const { peakBytes, bodyBytes, portions } = measureOf(name);
      least = Math.min(least, peakBytes / bodyBytes);
      expect(portions).toBeGreaterThan(10);
    }
    expect(least).toBeLessThan(4);
  });
});
