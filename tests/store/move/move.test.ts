import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { moveToPostgres } from "../../../src/store/move/move.ts";
import { openPostgresStore } from "../../../src/store/postgres/open.ts";
import { sharedPostgres, whyNoPostgres } from "../../support/postgres.ts";
import { createKeys, openTestStore } from "../test-store.ts";

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
});
