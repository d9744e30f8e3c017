import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { moveToPostgres } from "../../../src/store/move/move.ts";
import { openPostgresStore } from "../../../src/store/postgres/open.ts";
import { databaseFile } from "../../../src/store/sqlite/open.ts";
import { sharedPostgres, whyNoPostgres } from "../../support/postgres.ts";
import { copyFolder, createKeys, openTestStore, type SqliteTestStore, usageIncrement } from "../test-store.ts";

const rowCount = 5000;

let filled: SqliteTestStore;
beforeAll(async () => {
  filled = await openTestStore();
  await createKeys(
    filled.store,
    Array.from({ length: rowCount }, (_, n) => `key ${n}`),
  );
  await filled.store.close();
});
afterAll(() => filled.folder.remove());

/** A closed database with thousands of keys. */
function filledSource() {
  const folder = copyFolder(filled.folder);
  return { folder, file: databaseFile(folder.path), [Symbol.dispose]: folder.remove };
}

type Options = Partial<Parameters<typeof moveToPostgres>[0]> & { file: string; url: string };

const move = (options: Options): Promise<number> =>
  moveToPostgres({ clock: Date.now, onProgress: () => {}, signal: new AbortController().signal, ...options });

const createTarget = async () => (await sharedPostgres()).createDatabase();

describe.skipIf(whyNoPostgres !== undefined)("a move", () => {
  test("reports its progress after each batch", async () => {
    using source = filledSource();
    const progress: [string, number, number][] = [];
    const onProgress = (...report: [string, number, number]) => void progress.push(report);
    await move({ file: source.file, url: await createTarget(), onProgress });
    expect(progress.filter(([table]) => table === "keys")).toEqual([
      ["keys", 2000, rowCount],
      ["keys", 4000, rowCount],
      ["keys", rowCount, rowCount],
    ]);
  });

  test.each([
    ["a token more", "input_tokens", "new.input_tokens := new.input_tokens + 1; return new;"],
    ["a row less", "day", "return null;"],
  ])("notices %s among many, and does not mark the folder", async (_, column, change) => {
    const opened = await openTestStore();
    const ids = await createKeys(opened.store, ["a", "b", "c"]);
    await opened.store.usage.add(ids.map((keyId) => usageIncrement({ keyId, minute: 1, inputTokens: 1_000_000_000 })));
    await opened.store.close();
    using source = copyFolder(opened.folder);
    const postgres = await sharedPostgres();
    const url = await postgres.createDatabase();
    await (await openPostgresStore({ url, clock: Date.now })).close();
    await postgres.run(
      `create function spoil() returns trigger language plpgsql as $$ begin ${change} end $$;
       create trigger spoil before insert on usage_day for each row when (new.key_id = 2) execute function spoil()`,
      url,
    );
    await expect(move({ file: databaseFile(source.path), url })).rejects.toThrow(
      `the copy differs from the original in usage_day.${column}`,
    );
    expect(existsSync(source.file("tollgate.db-moved"))).toBeFalse();
    opened.folder.remove();
  });

  test("copies what a killed server left staged", async () => {
    const killed = await openTestStore();
    await createKeys(killed.store, ["a"]);
    await killed.store.close();
    using source = copyFolder(killed.folder);
    killed.folder.remove();
    const increments = [usageIncrement({ keyId: 1, minute: 1, inputTokens: 7 })];
    const flush = { increments, requests: { rows: [], amendments: [] }, settled: [] };
    // Written by hand: the server's prepared statements would keep its connection open, and with it a lock.
    const database = new Database(databaseFile(source.path));
    database.run("insert into staged_flushes (ledger, flush, usage) values ('killed', 1, ?)", [JSON.stringify(flush)]);
    database.close();
    const url = await createTarget();
    await move({ file: databaseFile(source.path), url });
    const store = await openPostgresStore({ url, clock: Date.now });
    expect(await store.usage.sumOfKeys()).toMatchObject({ inputTokens: 7 });
    await store.close();
  });
});
