import { describe, expect, test } from "bun:test";
import {
  createPostgresPool,
  isConnectionLost,
  type PostgresPool,
  sqlStateOf,
} from "../../../src/store/postgres/pool.ts";
import { sharedPostgres, startPostgres, whyNoPostgres } from "../../support/postgres.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { StorageError } from "../../../src/store/storage-error.ts";

const createDatabase = async () => (await sharedPostgres()).createDatabase();
const run = (pool: PostgresPool, query: string) => pool.client.unsafe(query) as Promise<Record<string, unknown>[]>;
const failureOf = (work: Promise<unknown>) => work.then(() => undefined).catch((error: unknown) => error);

/** On a database with a table `t` of two rows, 1 and 2. */
async function openPool(options: { statementTimeoutMs?: number; url?: string } = {}) {
  const url = options.url ?? (await createDatabase());
  const pool = createPostgresPool({ url, connections: 4, statementTimeoutMs: options.statementTimeoutMs ?? 0 });
  // A loaded server may take longer to accept a connection than the pool waits for one.
  await pollUntil(async () => {
    await run(pool, "create table if not exists t (id int primary key, n int not null default 0)");
    return true;
  });
  await run(pool, "insert into t values (1), (2)");
  return Object.assign(pool, { url, [Symbol.asyncDispose]: pool.close });
}

describe.skipIf(whyNoPostgres !== undefined)("a PostgreSQL pool", () => {
  test("commits the queries of a transaction together, and rolls them back if it fails", async () => {
    await using pool = await openPool();
    const [row] = await pool.transaction(async () => {
      await run(pool, "update t set n = 5 where id = 1");
      const outside = await Promise.resolve().then(() => run(pool, "select n from t where id = 1"));
      expect(outside[0]).toEqual({ n: 5 });
      return outside;
    });
    expect(row).toEqual({ n: 5 });
    const failing = pool.transaction(async () => {
      await run(pool, "update t set n = 6 where id = 1");
      throw new Error("rolled back on purpose");
    });
    await expect(failing).rejects.toThrow("rolled back on purpose");
    expect((await run(pool, "select n from t where id = 1"))[0]).toEqual({ n: 5 });
  });

  test("runs other queries while a transaction waits, and they do not see its changes", async () => {
    await using pool = await openPool();
    const written = Promise.withResolvers<void>();
    const seen = Promise.withResolvers<void>();
    const transaction = pool.transaction(async () => {
      await run(pool, "update t set n = 7 where id = 1");
      written.resolve();
      await seen.promise;
    });
    await written.promise;
    expect((await run(pool, "select n from t where id = 1"))[0]).toEqual({ n: 0 });
    seen.resolve();
    await transaction;
    expect((await run(pool, "select n from t where id = 1"))[0]).toEqual({ n: 7 });
  });

  test("repeats a transaction that a deadlock rolled back", async () => {
    await using pool = await openPool();
    const bothHold = Promise.withResolvers<void>();
    let holding = 0;
    const addInOrder = (first: number, second: number) =>
      pool.transaction(async () => {
        await run(pool, `update t set n = n + 1 where id = ${first}`);
        if (++holding === 2) bothHold.resolve();
        await bothHold.promise;
        await run(pool, `update t set n = n + 1 where id = ${second}`);
      });
    await Promise.all([addInOrder(1, 2), addInOrder(2, 1)]);
    expect([...(await run(pool, "select n from t"))]).toEqual([{ n: 2 }, { n: 2 }]);
    // A loaded server may roll back more than one.
    expect(holding).toBeGreaterThan(2);
  });

  test("has the server cancel a statement that takes too long", async () => {
    await using pool = await openPool({ statementTimeoutMs: 100 });
    const failure = await failureOf(pool.withTimeout(20_000, () => run(pool, "select pg_sleep(30)")));
    expect(failure).toBeInstanceOf(StorageError);
    expect(String(failure)).toContain("statement timeout (57014)");
    expect(sqlStateOf(failure)).toBe("57014");
  });

  test("rejects after the timeout if the server stops responding, and recovers with the server", async () => {
    await using postgres = await startPostgres();
    await using pool = await openPool({ url: await postgres.createDatabase() });
    await postgres.freeze();
    // Without a timeout this would wait until the server is thawed.
    await expect(pool.withTimeout(300, () => run(pool, "select 1"))).rejects.toThrow("PostgreSQL does not respond");
    await postgres.thaw();
    await pollUntil(async () => (await pool.withTimeout(5000, () => run(pool, "select 1"))).length === 1);
  });

  test("reconnects if the server is read-only", async () => {
    await using pool = await openPool();
    const postgres = await sharedPostgres();
    const add = () => pool.withTimeout(5000, () => run(pool, "update t set n = n + 1"));
    const setReadOnly = (value: string) =>
      postgres.run(
        `alter database ${new URL(pool.url).pathname.slice(1)} set default_transaction_read_only = ${value}`,
      );
    await setReadOnly("on");
    await postgres.cutConnections();
    // The setting applies to new sessions only; open ones keep theirs.
    const failure = await pollUntil(async () => {
      const error = await failureOf(add());
      return sqlStateOf(error) === "25006" ? error : undefined;
    });
    expect(failure).toBeInstanceOf(StorageError);
    await setReadOnly("off");
    await failureOf(add());
    await add();
  });

  test("distinguishes a lost connection from a failed statement", async () => {
    await using pool = await openPool();
    const cut = await failureOf(run(pool, "select pg_terminate_backend(pg_backend_pid())"));
    expect(isConnectionLost(cut)).toBeTrue();
    const wrong = await failureOf(run(pool, "select 1 / 0"));
    expect(isConnectionLost(wrong)).toBeFalse();
    expect(sqlStateOf(wrong)).toBe("22012");
  });
});
