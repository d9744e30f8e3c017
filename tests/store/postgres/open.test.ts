import { describe, expect, test } from "bun:test";
import { createLedger } from "../../../src/ledger/ledger.ts";
import { readMigrations } from "../../../src/store/schema/migrations.ts";
import { openPostgresStore } from "../../../src/store/postgres/open.ts";
import type { FlushedRequests } from "../../../src/store/requests/contract.ts";
import { noUsage } from "../../../src/domain/usage.ts";
import { startFaultyProxy } from "../../support/faulty-proxy.ts";
import { dayNumberOf } from "../../../src/time/seoul.ts";
import { sharedPostgres, whyNoPostgres } from "../../support/postgres.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { requestRow, requestsOf } from "../logged-requests.ts";
import { createKeys, memoryLog, usageIncrement } from "../test-store.ts";
import { StorageError } from "../../../src/store/storage-error.ts";

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
    expect(new Set((await Promise.all(created)).map((key) => typeof key !== "string" && key.id)).size).toBe(4);
    for (const store of stores) await store.close();
  });

  test("of a build before the first migration is refused with the build to go through", async () => {
    const { createDatabase: create, run } = await sharedPostgres();
    const url = await create();
    await run("create table tollgate_migrations (created_at bigint primary key, hash text not null)", url);
    await run("insert into tollgate_migrations values (1795237069246, ''), (1795889675936, '')", url);
    await expect(openPostgresStore({ url, clock })).rejects.toThrow(
      "is of a build that is too old; start one of commit",
    );
  });

  test("of a newer version that took something away is refused, and one that only added is written", async () => {
    const url = await createDatabase();
    await (await openPostgresStore({ url, clock }, [...migrations, later("create table extra (id int)")])).close();
    const store = await openPostgresStore({ url, clock });
    const [keyId = 0] = await createKeys(store, ["a"]);
    await store.usage.add([usageIncrement({ keyId, minute: 29_000_000 })]);
    await store.close();
    const drops = { ...later("drop table extra"), createdAt: later().createdAt + 1 };
    await (await openPostgresStore({ url, clock }, [...migrations, later(), drops])).close();
    await expect(openPostgresStore({ url, clock })).rejects.toThrow(/^the database was written by a newer version/);
  });

  test("loses nothing that an earlier version writes while an instance of that runs", async () => {
    const url = await createDatabase();
    const earlier = await openPostgresStore({ url, clock });
    const [keyId = 0] = await createKeys(earlier, ["a"]);
    const drops = [...migrations, later("alter table audit drop column count")];
    await expect(openPostgresStore({ url, clock }, drops)).rejects.toThrow("an instance of an earlier version still");
    const adds = [...migrations, later("create table extra (id int)")];
    await Promise.all([openPostgresStore({ url, clock }, adds), openPostgresStore({ url, clock }, adds)]).then((both) =>
      Promise.all(both.map((store) => store.close())),
    );
    await earlier.usage.add([usageIncrement({ keyId, minute: 29_000_000 })]);
    await earlier.close();
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
    [
      "a server that does not exist",
      "postgres://u:hush@127.0.0.1:1/t",
      "PostgreSQL at 127.0.0.1:1/t cannot be reached",
    ],
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

  test("reads no more rows of small tables than a flush corrects", async () => {
    const url = await createDatabase();
    const postgres = await sharedPostgres();
    const writeOnce = async (ids: readonly number[], requests: FlushedRequests): Promise<void> => {
      const store = await openPostgresStore({ url, clock });
      await store.usage.add(
        ids.map((keyId) => usageIncrement({ keyId, minute: 5 })),
        undefined,
        [],
        requests,
      );
      // The server's statistics have what a connection did once it is closed.
      await store.close();
    };
    const scansAfter = async (updates: number): Promise<unknown> =>
      pollUntil(async () => {
        const [row] = await postgres.run(
          "select sum(n_tup_upd)::int as updates, sum(seq_tup_read)::int as rows from pg_stat_user_tables where relname in ('keys', 'request_log')",
          url,
        );
        return row?.["updates"] === updates && row;
      });

    const store = await openPostgresStore({ url, clock });
    const names = Array.from({ length: 2000 }, (_, n) => `key ${n}`);
    const [keyId = 0] = await createKeys(store, names.slice(0, 1));
    await store.close();
    await postgres.run(
      `insert into keys select (jsonb_populate_record(k, jsonb_build_object('id', n, 'name', n, 'key', n))).*
        from keys k, generate_series(2, 2000) n`,
      url,
    );
    await writeOnce([], requestsOf(...names.map((requestId) => requestRow(5, { requestId, keyId, durationMs: 120 }))));
    await postgres.run("analyze keys, request_log", url);
    const before = await scansAfter(0);
    const end = { writtenUs: 120_000, durationUs: 130_000, responseBytes: 1 };
    await writeOnce([keyId], {
      rows: [],
      amendments: [{ requestId: "key 7", keyId, responseId: null, ...noUsage, end }],
    });
    expect(await scansAfter(2)).toEqual({ ...(before as object), updates: 2 });
  });

  test.each([
    [
      "a counter that is full",
      "update keys set input_tokens = 9223372036854775807 where id = 2",
      "bigint out of range (22003)",
    ],
    [
      "a trigger that refuses a key",
      `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'over budget'; end $$;
        create trigger refuse before update on keys for each row when (new.id = 2) execute function refuse()`,
      "over budget (P0001)",
    ],
  ])("with %s counts the usage of all other keys, and logs what it refuses", async (_, statement, reason) => {
    const url = await createDatabase();
    const store = await openPostgresStore({ url, clock });
    await createKeys(store, ["a", "b", "c"]);
    await (await sharedPostgres()).run(statement, url);
    const { log, entries } = memoryLog();
    const ledger = createLedger({ store: store.usage, clock, log });
    for (let round = 0; round < 3; round++) {
      const recorded = [1, 2, 3].map((keyId) =>
        ledger.record({ keyId, closedAt: clock(), inputTokens: 3, outputTokens: 2 }),
      );
      await Promise.all(recorded);
    }
    expect((await store.keys.list()).map(({ requestCount }) => requestCount)).toEqual([3, 0, 3]);
    expect(ledger.refusedRequests()).toBe(3);
    const logged = { level: "error", reason, keyId: 2, requestCount: 1, inputTokens: 3, outputTokens: 2 };
    expect(entries).toMatchObject([logged, logged, logged]);
    expect(await ledger.close()).toBe(true);
    await store.close();
  });

  test.each([
    [
      "has a table of ours from another program",
      "create table keys (id int)",
      "the database belongs to another program",
    ],
    ["has lost a table", "drop table usage_day", "the table usage_day is missing; restore a backup"],
    ["is read-only", "alter database NAME set default_transaction_read_only = on", "read-only transaction (25006)"],
  ])("that %s is refused", async (_, statement, reason) => {
    const url = await createDatabase();
    const postgres = await sharedPostgres();
    if (!statement.startsWith("create")) await (await openPostgresStore({ url, clock })).close();
    await postgres.run(statement.replace("NAME", new URL(url).pathname.slice(1)), url);
    await expect(openPostgresStore({ url, clock })).rejects.toThrow(reason);
  });

  test("is shared with tables of another program that have other names", async () => {
    const url = await createDatabase();
    await (await sharedPostgres()).run("create table notes (text text)", url);
    await (await openPostgresStore({ url, clock })).close();
    await (await openPostgresStore({ url, clock })).close();
  });

  test("finds what counts against the limits of some keys without reading the usage of all others", async () => {
    const url = await createDatabase();
    const postgres = await sharedPostgres();
    const store = await openPostgresStore({ url, clock });
    const today = dayNumberOf(clock());
    await postgres.run(
      `insert into usage_day (day, key_id, request_count, input_tokens, output_tokens)
        select ${today} - days, key, 1, 1, 1 from generate_series(0, 40) as days, generate_series(1, 1000) as key`,
      url,
    );
    await postgres.run("analyze usage_day", url);
    const loads = await store.limits.listLoads(Array.from({ length: 50 }, (_, index) => index + 1));
    expect(loads.map(({ dayTokens }) => dayTokens)).toEqual(loads.map(() => 2));
    expect(await store.limits.listDays(1, today - 1, today)).toHaveLength(2);
    // Statistics are written when the connections end.
    await store.close();
    const scans = () =>
      postgres.run("select seq_tup_read, idx_scan from pg_stat_user_tables where relname = 'usage_day'", url);
    await pollUntil(async () => Number((await scans())[0]?.["idx_scan"]) > 0);
    expect((await scans())[0]?.["seq_tup_read"]).toBe("0");
  });

  test("gives a secret that is just being replaced to no other key", async () => {
    const url = await createDatabase();
    const postgres = await sharedPostgres();
    const [store, other] = [await openPostgresStore({ url, clock }), await openPostgresStore({ url, clock })];
    const [id = 0] = await createKeys(store, ["a"]);
    await postgres.run(
      `create function wait() returns trigger language plpgsql as $$ begin perform pg_sleep(0.5); return new; end $$;
        create trigger wait before insert on former_secrets for each row execute function wait()`,
      url,
    );
    const now = clock();
    const rotated = store.keys.rotate(id, { key: "new", now, validUntil: now + 60_000 });
    await pollUntil(
      async () => (await postgres.run("select 1 from pg_stat_activity where wait_event = 'PgSleep'", url)).length > 0,
    );
    expect(await other.keys.create({ name: "b", key: "secret of a", createdAt: now })).toBe("collision");
    expect(await rotated).toMatchObject({ id });
    for (const one of [store, other]) await one.close();
  });
});
