import { expect, test } from "bun:test";
import { listedRequest } from "../logged-requests.ts";
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

test("a key of a team with limits counts on its day once, and the team's day has it before the fold", async () => {
  await using opened = await openTestEngine();
  const { store, engine } = opened;
  const [keyId = 0] = await createKeys(store, ["a"]);
  const teamId = 9;
  const stage = prepareStage(engine);
  const increments = [usageIncrement({ keyId, teamId, minute: 1000, requestCount: 3 })];
  const settled = [{ subjects: [-teamId], instance: "one" }];
  const days = (): Promise<{ key_id: number; request_count: number }[]> =>
    engine.rows(sql`select key_id, request_count from usage_day order by key_id`);
  for (const number of [1, 2])
    await stage({ ledger: "test", number }, { increments, requests: { rows: [], amendments: [] }, settled });
  expect(await days()).toEqual([{ key_id: -teamId, request_count: 6 }]);
  await createFold(engine, Date.now).fold();
  expect(await days()).toEqual([
    { key_id: -teamId, request_count: 6 },
    { key_id: keyId, request_count: 6 },
  ]);
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
  const sum = { keyId: refused, minute: 1000, requestCount: 2 };
  expect(takeRefused()).toMatchObject([{ reason: expect.stringContaining("no"), increments: [sum] }]);
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
  for (const refuse of ["update on keys", "delete on staged_flushes"]) {
    engine.db.run(sql.raw(`create trigger "${refuse}" before ${refuse} begin select raise(abort, 'no'); end`));
  }
  await prepareStage(engine)(
    { ledger: "test", number: 1 },
    { increments: [usageIncrement({ keyId, minute: 1000 })], requests: { rows: [], amendments: [] }, settled: [] },
  );
  const { fold, takeRefused } = createFold(engine, Date.now);
  expect(await rejectionOf(fold())).toMatchObject({ code: "SQLITE_CONSTRAINT_TRIGGER" });
  expect(takeRefused()).toEqual([]);
  engine.db.run(sql`drop trigger "delete on staged_flushes"`);
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

test("requests that an older version staged are written into their columns", async () => {
  await using opened = await openTestEngine();
  const { store, engine } = opened;
  const values = `[1777690800000,"req-1",null,"192.0.2.7","OpenAI/Python","subagent","POST","/v1/chat/completions","gpt","served",
    "127.0.0.1:8000","load",200,"completed","upstream_error","ECONNRESET",7,30,4,20,3,9,24,77,"evicted",2,1500,20000,25250,
    120000,321,9000,512,0]`;
  const usage = `{"increments":[],"requests":{"rows":[{"values":${values},"responseId":null}],"amendments":[]},"settled":[]}`;
  engine.db.run(sql`insert into staged_flushes (ledger, flush, usage) values ('older', 1, ${usage})`);
  await createFold(engine, Date.now).fold();
  const told = { conversation: 77, cacheLoss: "evicted", changes: ["model", "max_tokens"] };
  expect((await store.requests.list({}, 10)).requests as unknown[]).toEqual([
    { ...listedRequest, ...told, id: 1, endedAt: 1_777_690_800_000 },
  ]);
  expect((await store.requests.list({ failed: true }, 10)).requests).toEqual([]);
});
