import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { moveToPostgres } from "../../../src/store/move/move.ts";
import { openPostgresStore } from "../../../src/store/postgres/open.ts";
import { sharedPostgres, whyNoPostgres } from "../../support/postgres.ts";
import { createKeys, openTestStore } from "../test-store.ts";

const rowCount = 5000;

/** A database with some thousand keys, which nobody uses. */
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
  test("tells how far it is, batch by batch", async () => {
    using source = await filledSource();
    const told: [string, number, number][] = [];
    await moveToPostgres({
      file: source.file,
      url: await (await sharedPostgres()).createDatabase(),
      onProgress: (...progress) => void told.push(progress),
      signal: new AbortController().signal,
    });
    expect(told.filter(([table]) => table === "keys")).toEqual([
      ["keys", 2000, rowCount],
      ["keys", 4000, rowCount],
      ["keys", rowCount, rowCount],
    ]);
  });

  test("that is stopped half way leaves a target that the next one starts over", async () => {
    using source = await filledSource();
    const url = await (await sharedPostgres()).createDatabase();
    const stopping = new AbortController();
    const stopped = moveToPostgres({
      file: source.file,
      url,
      onProgress: (table) => table === "keys" && stopping.abort(),
      signal: stopping.signal,
    });
    await expect(stopped).rejects.toThrow("stopped before everything was copied");
    await expect(openPostgresStore({ url, clock: Date.now })).rejects.toThrow("was not finished");
    await moveToPostgres({ file: source.file, url, onProgress: () => {}, signal: new AbortController().signal });
    const store = await openPostgresStore({ url, clock: Date.now });
    expect(await store.keys.countActive()).toBe(rowCount);
    await store.close();
  });

  test("does not pass for whole where a server goes on writing meanwhile", async () => {
    using source = await filledSource();
    using server = new Database(source.file);
    const moving = moveToPostgres({
      file: source.file,
      url: await (await sharedPostgres()).createDatabase(),
      // Behind the copy, and without a change to any sum.
      onProgress: (table) => table === "usage_minute" && server.run("update keys set name = 'KEY 0' where id = 1"),
      signal: new AbortController().signal,
    });
    await expect(moving).rejects.toThrow("the data folder changed while it was copied");
  });
});
