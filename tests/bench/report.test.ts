import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { benchmarksPage, comparisonTable, resultTables, storageTable } from "./report.ts";
import { readResults, type Row } from "./results.ts";

const first = "2026-11-21; Bun 1.4.5; medians of 5";
const row = (workload: string, values: Row["values"], conditions = first): Row => ({
  workload,
  figure: "CPU per request",
  unit: "µs",
  conditions,
  values,
});
const storage = {
  conditions: first,
  columns: [
    {
      engine: "SQLite",
      processes: 1,
      figures: {
        eventsPerSecond: 82_521,
        commitMs: { p50: 0.69, p99: 3.63 },
        singleCommitMs: 0.16,
        lookUpsPerSecond: 171_090,
        singleLookUpMs: 0.007,
      },
    },
  ],
};

describe("the page of benchmarks", () => {
  test("shows ratios first, then each measured target in a fixed order", () => {
    const rows = [row("small", { Tollgate: 100.4, nginx: 25 }), row("large", { direct: 0, Tollgate: 0 })];
    expect(comparisonTable(rows).split("\n")).toEqual([
      "| workload | figure               | Tollgate : nginx | direct | nginx | Tollgate |",
      "| -------- | -------------------- | ---------------: | -----: | ----: | -------: |",
      "| small    | CPU per request (µs) |             4.02 |        |  25.0 |      100 |",
      "| large    | CPU per request (µs) |                  |      0 |       |        0 |",
    ]);
  });

  test("compares with Busbar where it was measured", () => {
    const [head, , line] = comparisonTable([row("small", { Tollgate: 100, Busbar: 80 })]).split("\n");
    expect(head).toContain("| Tollgate : Busbar | Tollgate | Busbar |");
    expect(line).toMatch(/\| +1\.25 \| +100 \| +80\.0 \|$/);
  });

  test("marks rows that were measured in another run and lists the conditions of each run", () => {
    const rows = [row("small", {}, "later"), row("large", {}), row("huge", {})];
    const page = benchmarksPage({ rows, storage: undefined });
    expect(page).toContain("| small (2) |");
    expect(page).toContain("| large     |");
    expect(page).toContain(`\n\n${first}\n\n(2) later\n`);
    expect(page).not.toContain("## Growth");
  });

  test("leaves out what only says that nothing went wrong, and never what did", () => {
    const of = (workload: string, figure: string, tollgate: number): Row => ({
      ...row(workload, { Tollgate: tollgate }),
      figure,
    });
    const rows = [
      of("calm", "frames lost", 0),
      of("lossy", "frames lost", 1),
      of("stuck", "stalls over 200 ms", 3),
      of("busy", "memory", 90),
      of("idle, just started", "memory", 50),
      of("threads", "CPU per request, main thread", 30),
    ];
    const page = benchmarksPage({ rows, storage: undefined });
    const shown = rows.filter(({ workload }) => page.includes(`| ${workload}`));
    expect(shown.map(({ workload }) => workload)).toEqual(["lossy", "stuck", "idle, just started"]);
  });

  test("has at most 150 lines", () => {
    const published = readFileSync(join(import.meta.dir, "../../.github/BENCHMARKS.md"), "utf8");
    expect(published.split("\n").length).toBeLessThanOrEqual(151);
  });

  test("has a column for each engine and number of processes", () => {
    const lines = storageTable(storage).split("\n");
    expect(lines[0]).toContain("| SQLite, 1 |");
    expect(lines[2]).toMatch(/^\| usage events \(1\/s\) +\| +82,521 \|$/);
    expect(resultTables({ rows: [], storage })).toContain("## Storage");
    expect(benchmarksPage({ rows: [], storage })).not.toContain("## Storage");
  });

  test("has a row for each page of the console and number of keys", () => {
    const figures = { firstKb: 51.26, firstMainThreadMs: 90, drawnMs: 412, refreshKb: 9.9, refreshMainThreadMs: 21 };
    const console = { conditions: "today", rows: [{ view: "Overview", keys: 500, figures }] };
    const page = resultTables({ rows: [], storage: undefined, console });
    expect(page).toContain("## Console");
    expect(page).toMatch(/^\| Overview \| +500 \| +51\.3 \| +90\.0 \| +412 \| +9\.90 \| +21\.0 \|$/m);
  });

  test("has a row for each thing that grows", () => {
    const rows = [{ name: "keys", sizes: [10, 1000, 100_000], cpuUs: [100.4, 101, 130], ratio: 1.3 }];
    const page = benchmarksPage({ rows: [], storage: undefined, growth: { conditions: "today", rows } });
    expect(page).toContain("## Growth");
    const beside = [{ name: "a check", p99Ms: [2, 3.51] as const, ratio: 1.7, extraMb: 12 }];
    const both = benchmarksPage({ rows: [], storage: undefined, growth: { conditions: "today", rows, beside } });
    expect(both).toMatch(/^\| a check \| +2\.00 \/ 3\.51 \| +1\.70 \| +12\.0 \|$/m);
    expect(page).toMatch(/^\| keys +\| 10 \/ 1,000 \/ 100,000 \| +100 \/ 101 \/ 130 \| +1\.30 \|$/m);
  });

  test("ends with the hand-written profile", () => {
    expect(benchmarksPage({ rows: [], storage }, "## Profile\n")).toEndWith("\n\n## Profile\n");
  });

  test("is made of the measured figures and the part that is written by hand, and of nothing else", () => {
    const published = join(import.meta.dir, "../../.github");
    const profile = readFileSync(join(import.meta.dir, "profile.md"), "utf8");
    const page = benchmarksPage(readResults(join(published, "benchmarks.json")), profile);
    expect(readFileSync(join(published, "BENCHMARKS.md"), "utf8")).toBe(page);
  });
});
