import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { moveToPostgres } from "../../../src/store/move/move.ts";
import { openPostgresStore } from "../../../src/store/postgres/open.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { sharedPostgres, whyNoPostgres } from "../../support/postgres.ts";
import { createKeys, openTestStore, usageIncrement } from "../test-store.ts";

const rowCount = 5000;

/** A closed database with thousands of keys. */
async function filledSource() {
  const opened = await openTestStore();
  await createKeys(
    opened.store,
    Array.from({ length: rowCount }, (_, n) => `key ${n}`),
  );
  await opened.store.close();
  return { file: opened.file, [Symbol.dispose]: opened.folder.remove };
}

describe.skipIf(whyNoPostgres !== undefined)("a move", () => {
  test("reports its progress after each batch", async () => {
    using source = await filledSource();
    const progress: [string, number, number][] = [];
    await moveToPostgres({
      file: source.file,
      url: await (await sharedPostgres()).createDatabase(),
      clock: Date.now,
      onProgress: (...report) => void progress.push(report),
      signal: new AbortController().signal,
    });
    expect(progress.filter(([table]) => table === "keys")).toEqual([
      ["keys", 2000, rowCount],
      ["keys", 4000, rowCount],
      ["keys", rowCount, rowCount],
    ]);
  });

  test("that is stopped half way leaves a target on which the next move starts over", async () => {
    using source = await filledSource();
    const url = await (await sharedPostgres()).createDatabase();
    const stopping = new AbortController();
    const stopped = moveToPostgres({
      file: source.file,
      url,
      clock: Date.now,
      onProgress: (table) => table === "keys" && stopping.abort(),
      signal: stopping.signal,
    });
    await expect(stopped).rejects.toThrow("stopped before everything was copied");
    await expect(openPostgresStore({ url, clock: Date.now })).rejects.toThrow("was not finished");
    await moveToPostgres({
      file: source.file,
      url,
      clock: Date.now,
      onProgress: () => {},
      signal: new AbortController().signal,
    });
    const store = await openPostgresStore({ url, clock: Date.now });
    expect(await store.keys.countActive()).toBe(rowCount);
    await store.close();
  });

  test.each([
    ["a token more", "input_tokens", "new.input_tokens := new.input_tokens + 1; return new;"],
    ["a row less", "day", "return null;"],
  ])("notices %s among many", async (_, column, change) => {
    const opened = await openTestStore();
    const ids = await createKeys(opened.store, ["a", "b", "c"]);
    await opened.store.usage.add(ids.map((keyId) => usageIncrement({ keyId, minute: 1, inputTokens: 1_000_000_000 })));
    await opened.store.close();
    const postgres = await sharedPostgres();
    const url = await postgres.createDatabase();
    await (await openPostgresStore({ url, clock: Date.now })).close();
    await postgres.run(
      `create function spoil() returns trigger language plpgsql as $$ begin ${change} end $$;
       create trigger spoil before insert on usage_day for each row when (new.key_id = 2) execute function spoil()`,
      url,
    );
    const moving = moveToPostgres({
      file: opened.file,
      url,
      clock: Date.now,
      onProgress: () => {},
      signal: new AbortController().signal,
    });
    await expect(moving).rejects.toThrow(`the copy differs from the original in usage_day.${column}`);
    opened.folder.remove();
  });

  test("fails if a server writes to the source meanwhile", async () => {
    using source = await filledSource();
    using server = new Database(source.file);
    const moving = moveToPostgres({
      file: source.file,
      url: await (await sharedPostgres()).createDatabase(),
      // After the table was copied, and without a change to any checksum.
      clock: Date.now,
      onProgress: (table) => table === "usage_minute" && server.run("update keys set name = 'KEY 0' where id = 1"),
      signal: new AbortController().signal,
    });
    await expect(moving).rejects.toThrow("the data folder changed while it was copied");
  });

  test("fails if a server adds to its journal before the first table is copied", async () => {
    using source = await filledSource();
    const postgres = await sharedPostgres();
    const url = await postgres.createDatabase();
    await (await openPostgresStore({ url, clock: Date.now })).close();
    await using target = new SQL(url);
    let moving: Promise<number> | undefined;
    await target.begin(async (transaction) => {
      await transaction.unsafe("lock table settings in access share mode");
      moving = moveToPostgres({
        file: source.file,
        url,
        clock: Date.now,
        onProgress: () => {},
        signal: new AbortController().signal,
      });
      moving.catch(() => {});
      // By then, the move has added the journal to the tables.
      const waiting = "select 1 from pg_locks where not granted";
      await pollUntil(async () => (await postgres.run(waiting, url)).length > 0);
      using server = new Database(source.file);
      server.run("insert into usage_journal (ledger, flush, usage) values ('one', 1, '{}')");
    });
    await expect(moving).rejects.toThrow("the data folder changed while it was copied");
  });
});
