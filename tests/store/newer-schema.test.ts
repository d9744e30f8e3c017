import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { onEachEngine } from "./each-engine.ts";

onEachEngine(({ openTestEngine }) => {
  test("a build knows that a newer one migrated the database, and whether it may go on writing", async () => {
    await using opened = await openTestEngine();
    const { engine, store } = opened;
    const { table, latest } = engine.migrations;
    const record = (at: number, hash: string) =>
      engine.rows(
        sql`insert into ${sql.identifier(table)} (created_at, hash) values (${at}, ${hash}) returning 1 as one`,
      );
    expect(await store.database.schema()).toEqual({ isNewer: false, mayWrite: true });
    await record(latest + 1, "added");
    expect(await store.database.schema()).toEqual({ isNewer: true, mayWrite: true });
    await record(-(latest + 1), "least writer");
    expect(await store.database.schema()).toEqual({ isNewer: true, mayWrite: false });
    // The database is used again.
    await engine.rows(sql`delete from ${sql.identifier(table)} where abs(created_at) > ${latest} returning 1 as one`);
  });
});
