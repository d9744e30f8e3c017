import { describe, expect, test } from "bun:test";
import { createLedger } from "../../../src/ledger.ts";
import { readMigrations } from "../../../src/store/migrations.ts";
import { openPostgresStore } from "../../../src/store/postgres/open.ts";
import { StorageError } from "../../../src/store/store.ts";
import { startFaultyProxy } from "../../support/faulty-proxy.ts";
import { sharedPostgres, whyNoPostgres } from "../../support/postgres.ts";
import { createKeys, memoryLog, usageIncrement } from "../test-store.ts";

const migrations = readMigrations("postgres-migrations");
const later = (...statements: string[]) => ({
  createdAt: (migrations.at(-1)?.createdAt ?? 0) + 1,
  hash: "later",
  statements,
});
const clock = Date.now;
const createDatabase = async () => (await sharedPostgres()).createDatabase();

describe.skipIf(whyNoPostgres !== undefined)("a PostgreSQL database", () => {
  test("is created once by several instances that start at once", async () => {
    const url = await createDatabase();
    const stores = await Promise.all(Array.from({ length: 4 }, () => openPostgresStore({ url, clock })));
    const created = stores.map(({ keys }, n) => keys.create({ name: "k", key: `key ${n}`, createdAt: 0 }));
    expect(new Set((await Promise.all(created)).map((key) => key !== "collision" && key.id)).size).toBe(4);
    for (const store of stores) await store.close();
  });

  test("of a newer version is refused and not changed", async () => {
    const url = await createDatabase();
    await (await openPostgresStore({ url, clock }, [...migrations, later("create table extra (id int)")])).close();
    await expect(openPostgresStore({ url, clock })).rejects.toThrow(/^the database was written by a newer version/);
  });

  test("is unchanged after a migration that fails, and the previous version opens it", async () => {
    const url = await createDatabase();
    await (await openPostgresStore({ url, clock })).close();
    const broken = [...migrations, later("create table extra (id int)", "insert into nowhere values (1)")];
    await expect(openPostgresStore({ url, clock }, broken)).rejects.toThrow("nowhere");
    await (await openPostgresStore({ url, clock })).close();
    const [row] = await (await sharedPostgres()).run("select to_regclass('extra') as extra", url);
    expect(row).toEqual({ extra: null });
  });

  test.each([
    ["a server that does not exist", "postgres://u:hush@127.0.0.1:1/t", "PostgreSQL cannot be reached"],
    ["a malformed address", "postgres://u:hush@127.0.0.1:99999/t", "the address is malformed"],
  ])("is refused without showing the password if the URL has %s", async (_, url, message) => {
    const failure = await openPostgresStore({ url, clock }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StorageError);
    expect(String(failure)).toContain(message);
    expect(String(failure)).not.toContain("hush");
  });

  test("that does not exist is refused by its name, whatever PGDATABASE is", async () => {
    const url = (await createDatabase()).replace(/[^/]+$/, "no_such_database");
    process.env["PGDATABASE"] = "postgres";
    try {
      await expect(openPostgresStore({ url, clock })).rejects.toThrow('database "no_such_database" does not exist');
    } finally {
      delete process.env["PGDATABASE"];
    }
  });

  test("counts a flush once if the connection is lost before the response to its commit", async () => {
    const url = new URL(await createDatabase());
    using proxy = startFaultyProxy(Number(url.port));
    url.port = String(proxy.port);
    const store = await openPostgresStore({ url: url.href, clock });
    const [keyId = 0] = await createKeys(store, ["a"]);
    const ledger = createLedger({ store: store.usage, clock, log: memoryLog().log });
    for (let n = 1; n <= 5; n++) {
      proxy.loseResponseTo("COMMIT");
      await ledger.record({ keyId, closedAt: clock(), inputTokens: 3, outputTokens: 2 });
      expect(proxy.lost()).toBe(n);
      expect(await store.usage.sumOfKeys()).toEqual({ requestCount: n, inputTokens: n * 3, outputTokens: n * 2 });
    }
    await ledger.close();
    await store.close();
  });

  test("accepts concurrent flushes of the same keys from several instances without a deadlock", async () => {
    const url = await createDatabase();
    const stores = await Promise.all(Array.from({ length: 4 }, () => openPostgresStore({ url, clock })));
    const [first] = stores;
    if (first === undefined) throw new Error("No store");
    const ids = await createKeys(
      first,
      Array.from({ length: 50 }, (_, n) => `key ${n}`),
    );
    const minute = Math.floor(clock() / 60_000);
    await Promise.all(
      stores.map(async ({ usage }, instance) => {
        for (let n = 0; n < 60; n++) {
          // Half of the keys, in a different order each time.
          const mixed = ids.toSorted((a, b) => ((a * 7919 + n + instance) % 101) - ((b * 7919 + n + instance) % 101));
          const increments = mixed.slice(0, 25).map((keyId) => usageIncrement({ keyId, minute: minute - (n % 3) }));
          await usage.add(increments, { ledger: `ledger ${instance}`, number: n + 1 });
        }
      }),
    );
    expect(await first.usage.sumOfKeys()).toMatchObject({ requestCount: 4 * 60 * 25 });
    const [row] = await (
      await sharedPostgres()
    ).run("select deadlocks from pg_stat_database where datname = current_database()", url);
    expect(row).toEqual({ deadlocks: "0" });
    for (const store of stores) await store.close();
  });
});
