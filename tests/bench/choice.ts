import type { ListedRequest } from "../../src/domain/admissions.ts";
import { createAffinity } from "../../src/routing/affinity.ts";
import { type BackendRow, choose } from "../../src/routing/choice.ts";
import { createDispatch } from "../../src/routing/dispatch.ts";
import { backendOf, fileCatalog, replaceableCatalog } from "../support/catalog.ts";
import { silentLog } from "../support/local-places.ts";

import { createRandom } from "./routing/timeline.ts";
import { formatNumber, markdownTable } from "./table.ts";

// What the choice costs, by how many conversations are remembered: CPU time, in turn and in one run, so that other load on the
// machine counts little, and the ratios least. `bun tests/bench/choice.ts [CHOICES]`

const choices = Number(process.argv[2] ?? 100_000);
const [keys, programs, rounds] = [100, 20, 5];

/** A turn of one of the conversations. */
function turnOf(candidates: readonly string[], conversation: number, turn: number): ListedRequest {
  const prefix = conversation % programs;
  const messages = Array.from({ length: 20 }, (_, n) => [conversation * 31 + n + 1, 1000 * (20 - n)] as const);
  const trace = { thread: conversation * 45_035_996_273, tools: prefix, system: prefix, messages };
  return {
    keyId: 1 + (conversation % keys),
    waits: true,
    model: "m",
    candidates,
    characters: 40_000 + turn * 4000,
    conversation: { name: trace.thread, prefix, trace },
    tried: [],
  };
}

type Run = (request: ListedRequest) => unknown;

/** The pure choice, with what is remembered. */
function createChoice(names: readonly string[], conversations: number): Run {
  const affinity = createAffinity({ entries: 100_000, perOwner: 25_000 });
  for (let n = 0; n < conversations; n++) affinity.remember(names[n % names.length] ?? "", turnOf(names, n, 1));
  const rows = names.map((name, index): BackendRow => {
    const load = { inFlight: index, unbegun: index % 3, waitingTokens: index * 1000 };
    return { name, spill: false, maxConcurrency: 64, ...load, warmUp: undefined, standing: "in" };
  });
  return (request) =>
    choose(rows, {
      affinity: "a",
      tried: [],
      mayReturn: true,
      workAt: affinity.expect(request),
      tokens: affinity.tokensOf(request),
    });
}

/** All that is done for a request from its entry to its end. */
function createServing(names: readonly string[], conversations: number): Run {
  const backends = names.map((name) => backendOf(name));
  const dispatch = createDispatch({
    catalog: replaceableCatalog(fileCatalog(backends, [])),
    maxWaiting: 1000,
    backendWaitMs: 0,
    probe: async () => ({ ok: true }),
    received: async () => [],
    clock: Date.now,
    monotonic: () => performance.now(),
    log: silentLog,
    onChanged() {},
  });
  const listener = { onGranted() {}, onDisplaced() {} };
  const serve: Run = (request) => {
    const place = dispatch.enter(request, listener);
    place.report({ kind: "responded" });
    place.report({ kind: "begun" });
    place.leave({ tokens: 10_000, cached: 9000 });
  };
  for (let n = 0; n < conversations; n++) serve(turnOf(names, n, 1));
  return serve;
}

/** @returns microseconds of CPU for each request */
function measure(run: Run, names: readonly string[], conversations: number): number {
  const random = createRandom(1);
  const requests = Array.from({ length: 1000 }, () => turnOf(names, Math.floor(random() * conversations), 2));
  const before = process.cpuUsage();
  for (let n = 0; n < choices; n += requests.length) for (const request of requests) run(request);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / choices;
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;

const table = [["µs of CPU", "1 conversation", "10,000", "100,000", "100,000 : 1"]];
for (const count of [2, 16]) {
  const names = Array.from({ length: count }, (_, index) => `backend-${index}`);
  for (const [what, create] of [
    ["the choice", createChoice],
    ["all of routing", createServing],
  ] as const) {
    const sizes = [1, 10_000, 100_000].map((conversations) => ({
      conversations,
      run: create(names, conversations),
      times: [] as number[],
    }));
    // The first round warms up.
    for (let round = 0; round <= rounds; round++)
      for (const { conversations, run, times } of sizes) {
        const time = measure(run, names, conversations);
        if (round > 0) times.push(time);
      }
    const medians = sizes.map(({ times }) => median(times));
    const ratio = (medians[2] ?? NaN) / (medians[0] ?? NaN);
    table.push([`${what}, ${count} backends`, ...medians.map(formatNumber), formatNumber(ratio)]);
  }
}
process.stdout.write(`${markdownTable(table)}\n`);
