import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { createFold, prepareStage } from "../../../src/store/sqlite/staged-flushes.ts";
import { createKeys, openTestEngine, usageIncrement } from "../test-store.ts";

test.each([
  ["with its first time", false],
  ["after its first time was folded", true],
])("a flush that is staged again %s counts once", async (_, isFoldedBetween) => {
  await using opened = await openTestEngine();
  const { store, engine } = opened;
  const [keyId = 0] = await createKeys(store, ["a"]);
  const stage = prepareStage(engine);
  const { fold } = createFold(engine, Date.now);
  const increments = [usageIncrement({ keyId, minute: 1000, requestCount: 3 })];
  const stageOnce = () =>
    stage({ ledger: "test", number: 1 }, { increments, requests: { rows: [], amendments: [] }, settled: [] });
  await stageOnce();
  if (isFoldedBetween) await fold();
  await stageOnce();
  await fold();
  expect((await store.usage.sumOfKeys()).requestCount).toBe(3);
});

test("flushes count after another process has folded what this one saw refused, and their ids come again", async () => {
  await using opened = await openTestEngine();
  const { store, engine } = opened;
  const [keyId = 0] = await createKeys(store, ["a"]);
  const stage = prepareStage(engine);
  let number = 0;
  const stageOne = () =>
    stage(
      { ledger: "test", number: ++number },
      { increments: [usageIncrement({ keyId, minute: 1000 })], requests: { rows: [], amendments: [] }, settled: [] },
    );
  engine.db.run(sql`create trigger refuse before update on keys begin select raise(abort, 'no'); end`);
  const own = createFold(engine, Date.now);
  await stageOne();
  await stageOne();
  await own.fold();
  expect(own.takeRefused()).toHaveLength(2);
  engine.db.run(sql`drop trigger refuse`);
  const other = createFold(engine, Date.now);
  await other.fold();
  for (let flush = 0; flush < 10; flush++) await stageOne();
  await own.fold();
  await other.fold();
  expect((await store.usage.sumOfKeys()).requestCount).toBe(number);
});
