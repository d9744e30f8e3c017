import { expect, test } from "bun:test";
import { noBackendCounts } from "../../src/domain/backends.ts";
import { valueOfBucket } from "../../src/domain/histogram.ts";
import { createFacts, type FactsOptions } from "../../src/server/facts.ts";
import { minuteOf } from "../../src/time/seoul.ts";
import { openTestStore } from "../store/test-store.ts";
import { backendOf, fileCatalog, replaceableCatalog } from "../support/catalog.ts";

const hour = 60;
const noon = Date.parse("2026-11-29T12:00:00+09:00");

async function withFacts(
  given: Partial<FactsOptions>,
  work: (facts: ReturnType<typeof createFacts>, opened: Awaited<ReturnType<typeof openTestStore>>) => Promise<void>,
) {
  await using opened = await openTestStore(given.clock ?? (() => noon));
  const facts = createFacts({
    store: opened.store,
    clock: () => noon,
    monotonic: () => 0,
    catalog: replaceableCatalog(fileCatalog([backendOf("b")], [])),
    backendStates: {
      list: async () => [{ name: "b", state: "in", since: 0, inFlight: 0, waiting: 0 }],
      setDraining() {},
      hasRestarted() {},
    },
    checkBackends: async () => ({ ok: true }),
    upstreamFailures: { since: () => undefined, refused: () => ({ inQueue: 0, ofUsers: new Map() }) },
    ledger: {
      waiting: () => ({ requests: 0, keys: 0, sinceMs: 0 }),
      areCountsWaiting: () => false,
      refusedRequests: () => 0,
    },
    admissions: { decidedAlone: () => undefined },
    fallback: "local",
    certificate: undefined,
    server: undefined,
    dataDir: ".",
    makesBackups: true,
    ...given,
  });
  await work(facts, opened);
  facts.close();
}

const ticking = () => {
  let now = noon;
  // The tables are read again after 5 seconds.
  return { clock: () => now, later: () => void (now += 5000) };
};

test("the first bytes of ten minutes are compared with those of the seven days before", async () => {
  const { clock, later } = ticking();
  await withFacts({ clock }, async ({ gather }, { store }) => {
    const add = (minute: number, ms: number, requestCount: number) =>
      store.traffic.add({
        latencies: [],
        outcomes: [],
        backends: [
          {
            ...noBackendCounts,
            minute,
            backend: "b",
            requestCount,
            firstByte: `${ms}:${requestCount}`,
          },
        ],
      });
    const minute = minuteOf(noon);
    await add(minute - 8 * 24 * hour, 400, 900);
    await add(minute - 3 * 24 * hour, 100, 50);
    await add(minute - 20 * hour, 100, 50);
    await add(minute - 2, 200, 30);
    expect((await gather(false)).firstBytes).toEqual([]);
    // A portion of six hours with each look.
    for (let n = 0; n < 27; n++) {
      later();
      await gather(false);
    }
    const [medianMs, usualMs] = [valueOfBucket(200), valueOfBucket(100)];
    later();
    expect((await gather(false)).firstBytes).toEqual([{ backend: "b", requests: 30, medianMs, usualMs }]);
  });
});

test("what the backend generated today is compared with what was counted", async () => {
  const { clock, later } = ticking();
  await withFacts({ clock }, async ({ gather }, { store }) => {
    const reading = { source: "vllm", promptTokens: 0 };
    await store.reconciliation.add({ ...reading, at: noon - 120_000, generatedTokens: 5 });
    expect((await gather(false)).outputs).toBeUndefined();
    await store.reconciliation.add({ ...reading, at: noon - 60_000, generatedTokens: 50_005 });
    later();
    expect((await gather(false)).outputs).toEqual({ generated: 50_000, counted: 0 });
  });
});

test.each([
  ["answers", async () => ({ ok: true }), { isOut: false }],
  ["fails", async () => ({ ok: false, cause: "status_500" }), { isOut: true, cause: "status_500" }],
  ["does not answer", () => new Promise<never>(() => {}), { isOut: true, cause: "timeout" }],
  ["cannot be asked", () => Promise.reject(new Error("10.0.0.5 is private")), { isOut: true, cause: "timeout" }],
])("the only backend that %s", (_, checkBackends, seen) =>
  withFacts({ checkBackends }, async ({ gather }) => {
    expect((await gather(true)).backends).toMatchObject([{ name: "b", ...seen }]);
  }),
);

test("the only backend is asked at most once in 3 s while people look, and else only while requests fail", async () => {
  let [now, asked] = [noon, 0];
  let failing: number | undefined;
  const checkBackends = async () => ({ ok: (asked += 1) < 0 });
  const upstreamFailures = { since: () => failing, refused: () => ({ inQueue: 0, ofUsers: new Map() }) };
  await withFacts({ clock: () => now, checkBackends, upstreamFailures }, async ({ gather }) => {
    expect((await gather(false)).backends).toMatchObject([{ isOut: false }]);
    expect(asked).toBe(0);
    failing = noon - 5000;
    expect((await gather(false)).backends).toMatchObject([{ isOut: true, since: noon - 5000 }]);
    now += 2999;
    await Promise.all([gather(true), gather(true)]);
    expect(asked).toBe(1);
    now += 1;
    await gather(true);
    expect(asked).toBe(2);
  });
});

test("a fact that cannot be found out is absent, and the others are there", () =>
  withFacts(
    {
      catalog: replaceableCatalog(fileCatalog([backendOf("a"), backendOf("b")], [])),
      backendStates: {
        list: () => Promise.reject(new Error("no reply in time")),
        setDraining() {},
        hasRestarted() {},
      },
      machine: () => new Promise(() => {}),
      server: "PostgreSQL",
    },
    async ({ gather }) => {
      const facts = await gather(true);
      expect([facts.backends, facts.disk]).toEqual([undefined, undefined]);
      expect(facts).toMatchObject({ database: { name: "PostgreSQL", isWritable: true }, traffic: [] });
    },
  ));

test("the certificate in use is that of the last renewal", () =>
  withFacts({ certificate: { validTo: new Date(5) } }, async ({ gather, servesCertificate }) => {
    expect((await gather(false)).certificate).toBe(5);
    servesCertificate({ validTo: new Date(9) });
    expect((await gather(false)).certificate).toBe(9);
  }));

test("the latest good backup, and why the latest was none, are told until the next good one", async () => {
  const { clock, later } = ticking();
  await withFacts({ clock }, async ({ gather }, { store }) => {
    expect((await gather(false)).backup).toEqual({ lastAt: undefined });
    for (const kind of ["failed", "skipped"] as const) {
      await store.database.recordBackups({
        succeeded: { at: 5, file: "a" },
        problem: { kind, at: 9, reason: "no room" },
      });
      later();
      expect((await gather(false)).backup).toEqual({ lastAt: 5, [kind]: "no room" });
    }
  });
});
