import {
  type BesideRow,
  type ConsoleResults,
  type GrowthResults,
  type Results,
  type Row,
  type StorageFigures,
  type StorageResults,
  targetNames,
} from "./results.ts";
import { formatNumber, markdownTable } from "./table.ts";

const intro = `# Benchmarks

\`bun run bench\` measures everything and writes this page, \`bench.svg\` and \`benchmarks.json\`, which has more figures, those
of storage and console too. \`bun run bench --only NAME\` measures one thing again: \`growth\`, \`storage\`, \`console\`, or a name of
\`tests/bench/workloads.ts\`. \`--only guard\` compares with the budgets in CONTRIBUTING.

![CPU per request and per frame, compared with nginx, another gateway and a bare Bun server](bench.svg)

The simulated backend and the load generator share one core; the measured program has another one to itself. Each figure
is the median of several rounds, in which the targets are measured in turn. Ratios differ less than times between machines,
but by up to half: cold caches cost a larger program more. A run counts only if Tollgate's counters equal what the clients
read; frames that were lost or stalled would have a row.

- direct: without a proxy. nginx: without a log; "nginx, key map" checks keys against a map and writes a log.
- Tollgate: checks each key, commits each count before the client sees the end of its response, and writes its log.
- Busbar: in Rust, with a key and counts in memory; measured where \`BENCH_BUSBAR\` names its binary.
- GoModel: in Go, with a key, and counts that reach SQLite some seconds later; measured where \`BENCH_GOMODEL\` names it.
- Bun passthrough only forwards; Bun transform pipes streams through a TransformStream: the runtime's share of the cost.
`;

const storageIntro = `## Storage

Usage events and key look-ups through ledger and store, from one or more processes that share one database. A measurement
counts only if the sum in the database equals the number of committed events.
`;

const consoleIntro = `## Console

What each page fetches from the API, compressed, and what that costs the browser's main thread, with a year of usage. Drawn:
from opening the page to bars in the chart. Refresh: what each later poll adds.
`;

const growthIntro = `## Growth

Small completions at 32 connections while something grows. For each kind its sizes in turn, and the ratio of the largest to the
smallest size: \`bun run bench --only growth\` fails where one is over 1.20.
`;

/** The page of benchmarks in Markdown. @param profile further sections, written by hand */
export function benchmarksPage({ rows, growth }: Results, profile = ""): string {
  const sections = [intro, ...comparisonSection(rows), ...growthSection(growth)];
  if (profile !== "") sections.push(profile);
  return sections.join("\n");
}

/** All that was measured. */
export const resultTables = ({ rows, growth, storage, console }: Results): string =>
  [
    ...comparisonSection(rows),
    ...growthSection(growth),
    ...(storage === undefined ? [] : [`${storageIntro}\n${storageTable(storage)}\n\n${storage.conditions}\n`]),
    ...(console === undefined ? [] : [`${consoleIntro}\n${consoleTable(console)}\n\n${console.conditions}\n`]),
  ].join("\n");

function comparisonSection(rows: readonly Row[]): string[] {
  const shown = rows.filter(isShown);
  if (shown.length === 0) return [];
  return [`## Requests and streams\n\n${comparisonTable(shown)}\n\n${conditionLines(conditionsOf(shown))}\n`];
}

function growthSection(growth: GrowthResults | undefined): string[] {
  if (growth === undefined) return [];
  const { beside = [], conditions } = growth;
  const tables = [growthTable(growth), ...(beside.length === 0 ? [] : [besideIntro, besideTable(beside)])];
  return [`${growthIntro}\n${tables.join("\n\n")}\n\n${conditions}\n`];
}

const besideIntro = `400 small completions a second beside what a server does now and then, with 5,000,000 rows in its request log and 2,160,000
of counts by the minute; it fails where the 99th percentile is over 2.00 times that without it, or memory over 32 MB more.`;

const besideTable = (rows: readonly BesideRow[]): string =>
  markdownTable(
    [
      ["beside", "p99 without and with it (ms)", "with : without", "memory more (MB)"],
      ...rows.map(({ name, p99Ms, ratio: more, extraMb }) => [
        name,
        p99Ms.map(formatNumber).join(" / "),
        more.toFixed(2),
        formatNumber(extraMb),
      ]),
    ],
    1,
  );

export const growthTable = ({ rows }: GrowthResults): string =>
  markdownTable(
    [
      ["what grows", "from and to", "CPU per request (µs)", "largest : smallest"],
      ...rows.map(({ name, sizes, cpuUs, ratio: steepness }) => [
        name,
        sizes.map((size) => size.toLocaleString("en")).join(" / "),
        cpuUs.map(formatNumber).join(" / "),
        steepness.toFixed(2),
      ]),
    ],
    2,
  );

/** These say what goes into a figure that is shown, or follow from it; `benchmarks.json` has them. */
const details = /^CPU per request, |^requests per second$/;
/** Shown where there is one. */
const faults = new Set(["frames lost", "stalls over 200 ms"]);

/** Between those that are shown. */
const between = /^(?:small completions, (?:8|128|512) connections|1000 streams)/;

/** Whether the page has the row. One that says that nothing went wrong is left out, and memory but that of an idle program. */
function isShown({ workload, figure, values }: Row): boolean {
  if (faults.has(figure)) return values["Tollgate"] !== 0;
  if (figure === "memory") return workload.startsWith("idle");
  return !details.test(figure) && !between.test(workload);
}

/** The conditions of all runs, those of the most rows first. */
function conditionsOf(rows: readonly Row[]): string[] {
  const counts = new Map<string, number>();
  for (const { conditions } of rows) counts.set(conditions, (counts.get(conditions) ?? 0) + 1);
  return [...counts].toSorted(([, a], [, b]) => b - a).map(([conditions]) => conditions);
}

/** A row of another run than the first one refers to that run's conditions by number. */
export function comparisonTable(rows: readonly Row[]): string {
  const conditions = conditionsOf(rows);
  const targets = targetNames.filter((name) => rows.some(({ values }) => name in values));
  const compared = targets.filter((name) => ["nginx", "Busbar", "GoModel"].includes(name));
  const head = ["workload", "figure", ...compared.map((name) => `Tollgate : ${name}`), ...targets];
  const lines = rows.map((row) => {
    const run = conditions.indexOf(row.conditions) + 1;
    return [
      run === 1 ? row.workload : `${row.workload} (${run})`,
      row.unit === "" ? row.figure : `${row.figure} (${row.unit})`,
      ...compared.map((name) => ratio(row.values, name)),
      ...targets.map((target) => formatNumber(row.values[target])),
    ];
  });
  return markdownTable([head, ...lines], 2);
}

function conditionLines(conditions: readonly string[]): string {
  return conditions.map((text, index) => (index === 0 ? text : `(${index + 1}) ${text}`)).join("\n\n");
}

export function storageTable({ columns }: StorageResults): string {
  const row = (name: string, of: (figures: StorageFigures) => number): string[] => [
    name,
    ...columns.map(({ figures }) => formatNumber(of(figures))),
  ];
  return markdownTable([
    ["engine, processes", ...columns.map(({ engine, processes }) => `${engine}, ${processes}`)],
    row("usage events (1/s)", ({ eventsPerSecond }) => eventsPerSecond),
    row("commit, p50 (ms)", ({ commitMs }) => commitMs.p50),
    row("commit, p99 (ms)", ({ commitMs }) => commitMs.p99),
    row("commit with one caller, p50 (ms)", ({ singleCommitMs }) => singleCommitMs),
    row("key look-ups (1/s)", ({ lookUpsPerSecond }) => lookUpsPerSecond),
    row("key look-up with one caller, p50 (ms)", ({ singleLookUpMs }) => singleLookUpMs),
  ]);
}

export function consoleTable({ rows }: ConsoleResults): string {
  const head = [
    "page",
    "keys",
    "first (kB)",
    "first, main thread (ms)",
    "drawn (ms)",
    "refresh (kB)",
    "refresh, main thread (ms)",
  ];
  const most = Math.max(...rows.map(({ keys }) => keys));
  const lines = rows
    .filter(({ keys }) => keys === most)
    .map(({ view, keys, figures }) => [
      view,
      String(keys),
      formatNumber(figures.firstKb),
      formatNumber(figures.firstMainThreadMs),
      formatNumber(figures.drawnMs),
      formatNumber(figures.refreshKb),
      formatNumber(figures.refreshMainThreadMs),
    ]);
  return markdownTable([head, ...lines]);
}

function ratio(values: Row["values"], other: string): string {
  const [ours, theirs] = [values["Tollgate"], values[other]];
  return ours === undefined || theirs === undefined || theirs === 0 || ours === 0 ? "" : (ours / theirs).toFixed(2);
}
