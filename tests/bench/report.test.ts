import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { benchmarksPage } from "./report.ts";
import { readResults } from "./results.ts";

test("the page of benchmarks is the measured figures and the part written by hand, in at most 150 lines", () => {
  const published = join(import.meta.dir, "../../.github");
  const profile = readFileSync(join(import.meta.dir, "profile.md"), "utf8");
  const page = benchmarksPage(readResults(join(published, "benchmarks.json")), profile);
  expect(readFileSync(join(published, "BENCHMARKS.md"), "utf8")).toBe(page);
  expect(page.split("\n").length).toBeLessThanOrEqual(151);
});
