import type { ListedRequest } from "../../src/domain/admissions.ts";
import { createAffinity } from "../../src/routing/affinity.ts";
import { type BackendRow, choose } from "../../src/routing/choice.ts";
import { createDispatch } from "../../src/routing/dispatch.ts";
import { backendOf, fileCatalog, replaceableCatalog } from "../support/catalog.ts";
import { silentLog } from "../support/local-places.ts";

import { createRandom } from "./routing/timeline.ts";
import { formatNumber, markdownTable } from "./table.ts";

// What the choice among 16 backends costs while 100,000 conversations are remembered: CPU time, so that other load on the
// machine counts little. `bun tests/bench/choice.ts [CHOICES]`

const choices = Number(process.argv[2] ?? 200_000);
const [conversations, keys, programs] = [100_000, 100, 20];
const names = Array.from({ length: 16 }, (_, index) => `backend-${index}`);

/** A turn of one of the conversations. */
function turnOf(conversation: number, turn: number): ListedRequest {
  const prefix = conversation % programs;
  const messages = Array.from({ length: 20 }, (_, n) => [conversation * 31 + n + 1, 1000 * (20 - n)] as const);
  const trace = { thread: conversation * 45_035_996_273, tools: prefix, system: prefix, messages };
  return {
    keyId: 1 + (conversation % keys),
    waits: true,
    model: "m",
    candidates: names,
    characters: 40_000 + turn * 4000,
    conversation: { name: trace.thread, prefix, trace },
    tried: [],
  };
}

function measure(run: (request: ListedRequest) => unknown): number {
  const random = createRandom(1);
  const requests = Array.from({ length: 1000 }, () => turnOf(Math.floor(random() * conversations), 2));
  for (let n = 0; n < 20_000; n++) run(requests[n % requests.length] ?? turnOf(0, 2));
  const before = process.cpuUsage();
  for (let n = 0; n < choices; n++) run(requests[n % requests.length] ?? turnOf(0, 2));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / choices;
}

/** The pure choice, with what is remembered. */
function measureChoice(): number {
  const affinity = createAffinity({ entries: conversations, perOwner: conversations / 4 });
  for (let n = 0; n < conversations; n++) affinity.remember(names[n % names.length] ?? "", turnOf(n, 1));
  const rows = names.map((name, index): BackendRow => {
    const load = { inFlight: index, unbegun: index % 3, waitingTokens: index * 1000 };
    return { name, spill: false, maxConcurrency: 64, ...load, warmUp: undefined, standing: "in" };
  });
  return measure((request) =>
    choose(rows, {
      affinity: "a",
      tried: [],
      mayReturn: true,
      workAt: affinity.expect(request),
      tokens: affinity.tokensOf(request),
    }),
  );
}

/** All that is done for a request from its entry to its end. */
function measureDispatch(): number {
  using dispatch = createDispatch({
    catalog: replaceableCatalog(
      fileCatalog(
        names.map((name) => backendOf(name)),
        [],
      ),
    ),
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
  const serve = (request: ListedRequest): void => {
    const place = dispatch.enter(request, listener);
    place.report({ kind: "responded" });
    place.report({ kind: "begun" });
    place.leave();
  };
  for (let n = 0; n < conversations; n++) serve(turnOf(n, 1));
  return measure(serve);
}

const rows = [
  ["the choice", formatNumber(measureChoice())],
  ["all of routing for a request", formatNumber(measureDispatch())],
];
process.stdout.write(`${markdownTable([["16 backends, 100,000 conversations", "µs of CPU"], ...rows])}\n`);
