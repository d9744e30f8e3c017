import { beforeAll, describe, expect, test } from "bun:test";
import type { KeyLimits } from "../../src/domain/keys.ts";
import { noLimits } from "../../src/store/keys/rules.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type EngineName, takeDatabase, whyNoPostgres } from "../support/postgres.ts";
import { rounds } from "../support/rounds.ts";
import { seed } from "./limits-model/seed.ts";
import { startFleet } from "./limits-model/fleet.ts";
import { beatMs, deadAfterMs, giveBackMs, keyCount, runModel } from "./limits-model/run.ts";
import { openPostgresTestStore } from "./postgres/postgres-test-store.ts";
import { createKeys, openTestStore } from "./test-store.ts";

/*
 * One model of limits: random keys, limits, sizes and ends, instances that are killed and stopped, limits that change. The
 * oracle is what the scripted backend really had at once and generated (limits-model/oracle.ts), whatever keeps the counts.
 */

/** By night a run lasts longer than the window of a minute. */
const isLong = rounds > 3;
const roundMs = isLong ? 4000 : 700;
/** What is not given back is waited for, and then reported. */
const timeoutMs = rounds * roundMs * 3 + 150_000;
const names = Array.from({ length: keyCount }, (_, index) => `key ${index + 1}`);

/** Processes of one machine share its clock. Those of instances may be apart: limits go by the database's. */
const maxSkewMs = 90_000;

/** So often a run is repeated that tells nothing, because the machine was too busy. */
const maxRuns = 3;

async function expectLimitsHold(engine: EngineName, instances: number): Promise<void> {
  for (let at = 0; at < maxRuns; at++) {
    const found = await violationsOf(engine, { seed: seed + at, instances, rounds, roundMs });
    if (found !== undefined) return expect(found).toEqual([]);
  }
  process.stderr.write(`The machine was too busy to tell whether limits hold on ${engine}\n`);
}

type Run = Pick<Parameters<typeof runModel>[0], "seed" | "instances" | "rounds" | "roundMs">;

async function violationsOf(engine: EngineName, run: Run): ReturnType<typeof runModel> {
  if (engine === "SQLite") {
    await using opened = await openTestStore();
    await createKeys(opened.store, names);
    const database = { dataDir: opened.folder.path, databaseUrl: undefined };
    return await runModel({ ...run, maxSkewMs: 0, database, store: opened.store });
  }
  const { url, release } = await takeDatabase();
  await using opened = await openPostgresTestStore(Date.now, url);
  await createKeys(opened.store, names);
  const found = await runModel({ ...run, maxSkewMs, database: { dataDir: "", databaseUrl: url }, store: opened.store });
  release();
  return found;
}

// It starts before the machine is busy.
beforeAll(async () => {
  if (whyNoPostgres === undefined) (await takeDatabase()).release();
}, timeoutMs);

describe.concurrent("limits hold as the backend sees it, while instances are killed and stopped and limits change", () => {
  test("one process", () => expectLimitsHold("SQLite", 1), timeoutMs);
  test("two processes", () => expectLimitsHold("SQLite", 2), timeoutMs);
  test.skipIf(whyNoPostgres !== undefined)(
    "three instances on PostgreSQL",
    () => expectLimitsHold("PostgreSQL", 3),
    timeoutMs,
  );
});

/** They wait for long. */
const testByNight = isLong ? test : test.skip;

describe.skipIf(whyNoPostgres !== undefined).concurrent("instances on PostgreSQL", () => {
  async function fleetOf(skews: readonly number[], more: { waitLimitMs?: number } = {}) {
    const { url, release } = await takeDatabase();
    const opened = await openPostgresTestStore(Date.now, url);
    await createKeys(opened.store, names);
    const fleet = await startFleet({ dataDir: "", databaseUrl: url, beatMs, deadAfterMs, ...more }, skews);
    return {
      ...fleet,
      url,
      store: opened.store,
      /** How many are admitted of so many requests that the instances get in turn. */
      async admitted(count: number, limits: Partial<KeyLimits>, on = [0, 1]): Promise<number> {
        const request = { keyId: 1, limits: { ...noLimits, ...limits }, tokens: 0, runMs: 0, generates: null };
        const sent = Array.from({ length: count }, (_, n) => fleet.send(on[n % on.length] ?? 0, request));
        return (await Promise.all(sent)).filter(({ refusedBy }) => refusedBy === undefined).length;
      },
      async [Symbol.asyncDispose]() {
        await fleet[Symbol.asyncDispose]();
        await opened[Symbol.asyncDispose]();
        release();
      },
    };
  }

  test(
    "whose clocks are apart admit no more requests than the limit",
    async () => {
      // A machine without time for the database is no database that is away, which would have its own rule.
      await using fleet = await fleetOf([-90_000, 0], { waitLimitMs: 60_000 });
      expect(await fleet.admitted(60, { requests_per_minute: 20 })).toBe(20);
    },
    timeoutMs,
  );

  testByNight(
    "count what the requests of a killed one may have used",
    async () => {
      await using fleet = await fleetOf([0, 0]);
      const limits = { ...noLimits, tokens_per_minute: 100 };
      const request = { keyId: 1, limits, tokens: 100, runMs: 60_000, generates: 100 };
      const cut = fleet.send(0, request);
      await pollUntil(() => fleet.observed[0] !== undefined && fleet.observed[0].decidedAt < Infinity);
      await fleet.kill(0);
      await cut;
      const isReleased = async () => (await fleet.store.limits.listLoads([1]))[0]?.reserved === 0;
      await pollUntil(isReleased, giveBackMs);
      expect((await fleet.send(1, { ...request, runMs: 0 })).refusedBy).toBe("tokens_per_minute");
    },
    timeoutMs,
  );

  testByNight(
    "enforce the limits while one is stopped, wherever in a batch",
    async () => {
      await using fleet = await fleetOf([0, 0, 0]);
      const stopping = new AbortController();
      const busy = async (): Promise<void> => {
        while (!stopping.signal.aborted) await fleet.admitted(8, { max_concurrency: 1000 }, [0]);
      };
      void busy();
      let admitted = 0;
      for (let n = 0; n < 30; n++) {
        fleet.stop(0);
        admitted += await fleet.admitted(2, { requests_per_minute: 30 }, [1, 2]);
        fleet.wake(0);
        // So that it stops elsewhere the next time.
        await Bun.sleep(20);
      }
      stopping.abort();
      expect(admitted).toBe(30);
      expect(fleet.warnings).toEqual([]);
    },
    timeoutMs,
  );
});
