import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { createFold, prepareStage } from "../../../src/store/sqlite/staged-flushes.ts";
import { StorageError } from "../../../src/store/storage-error.ts";
import { rejectionOf } from "../../support/rejection.ts";
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

test("what the database refuses of the staged flushes is reported once, by key, and the rest counts", async () => {
  await using opened = await openTestEngine();
  const { store, engine } = opened;
  const keyIds = await createKeys(store, ["a", "b"]);
  const [kept = 0, refused = 0] = keyIds;
  const stage = prepareStage(engine);
  let number = 0;
  const stageOne = (...ids: number[]) =>
    stage(
      { ledger: "test", number: ++number },
      {
        increments: ids.map((keyId) => usageIncrement({ keyId, minute: 1000 })),
        requests: { rows: [], amendments: [] },
        settled: [],
      },
    );
  engine.db.run(
    sql.raw(`create trigger refuse before update on keys when new.id = ${refused}
      begin select raise(abort, 'no'); end`),
  );
  const { fold, takeRefused } = createFold(engine, Date.now);
  await stageOne(kept, refused);
  await stageOne(refused);
  await stageOne(kept);
  await fold();
  const increment = { keyId: refused, minute: 1000, requestCount: 1 };
  expect(takeRefused()).toMatchObject([{ reason: expect.stringContaining("no"), increments: [increment, increment] }]);
  engine.db.run(sql`drop trigger refuse`);
  await stageOne(refused);
  await createFold(engine, Date.now).fold();
  await fold();
  expect(takeRefused()).toEqual([]);
  expect((await store.keys.list()).map((key) => key.requestCount)).toEqual([2, 1]);
});

test("what a fold would have left out is reported when that fold is committed, and once", async () => {
  await using opened = await openTestEngine();
  const { store, engine } = opened;
  const [keyId = 0] = await createKeys(store, ["a"]);
  for (const refuse of ["update on keys", "delete on usage_journal"]) {
    engine.db.run(sql.raw(`create trigger "${refuse}" before ${refuse} begin select raise(abort, 'no'); end`));
  }
  await prepareStage(engine)(
    { ledger: "test", number: 1 },
    { increments: [usageIncrement({ keyId, minute: 1000 })], requests: { rows: [], amendments: [] }, settled: [] },
  );
  const { fold, takeRefused } = createFold(engine, Date.now);
  expect(await rejectionOf(fold())).toMatchObject({ code: "SQLITE_CONSTRAINT_TRIGGER" });
  expect(takeRefused()).toEqual([]);
  engine.db.run(sql`drop trigger "delete on usage_journal"`);
  await fold();
  expect(takeRefused()).toMatchObject([{ increments: [{ keyId, requestCount: 1 }] }]);
});

test("a trigger that ends the transaction loses nothing: the flushes stay staged", async () => {
  await using opened = await openTestEngine();
  const { store, engine } = opened;
  const [keyId = 0] = await createKeys(store, ["a"]);
  engine.db.run(sql`create trigger refuse before update on keys begin select raise(rollback, 'no'); end`);
  await prepareStage(engine)(
    { ledger: "test", number: 1 },
    { increments: [usageIncrement({ keyId, minute: 1000 })], requests: { rows: [], amendments: [] }, settled: [] },
  );
  const { fold, takeRefused } = createFold(engine, Date.now);
  const failure = await rejectionOf(fold());
  expect(failure).toBeInstanceOf(StorageError);
  expect(failure).toMatchObject({ message: "no (SQLITE_CONSTRAINT_TRIGGER)", isRefusal: false });
  expect(takeRefused()).toEqual([]);
  engine.db.run(sql`drop trigger refuse`);
  await fold();
  expect((await store.usage.sumOfKeys()).requestCount).toBe(1);
});
