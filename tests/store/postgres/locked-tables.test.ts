import { SQL } from "bun";
import { describe, expect, test } from "bun:test";
import { openPostgresStore } from "../../../src/store/postgres/open.ts";
import type { Store } from "../../../src/store/store.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { type Postgres, sharedPostgres, whyNoPostgres } from "../../support/postgres.ts";
import { createKeys, usageIncrement } from "../test-store.ts";

/** Ten, and four that the server is about to cancel. */
const mostConnections = 14;

interface Locked extends AsyncDisposable {
  store: Store;
  keyId: number;
  /** Of the store, at the server. @param those that wait for a lock, or all of them */
  countConnections(which: "waiting" | "all"): Promise<number>;
  release(): Promise<void>;
}

/** A store, beside someone's open transaction in which a statement has locked something. */
async function lock(statement: string): Promise<Locked> {
  const postgres: Postgres = await sharedPostgres();
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({ url, clock: Date.now });
  const [keyId = 0] = await createKeys(store, ["a"]);
  const other = await new SQL(url, { max: 1 }).reserve();
  await other.unsafe("begin");
  await other.unsafe(statement);
  const release = async (): Promise<void> => void (await other.unsafe("rollback"));
  return {
    store,
    keyId,
    async countConnections(which) {
      const rows = await postgres.run(
        `select 1 from pg_stat_activity where application_name = 'tollgate' and datname = current_database()
          ${which === "all" ? "" : "and wait_event_type = 'Lock'"}`,
        url,
      );
      return rows.length;
    },
    release,
    async [Symbol.asyncDispose]() {
      await release();
      await store.close();
      await other.close();
    },
  };
}

describe.skipIf(whyNoPostgres !== undefined)("while someone has locked", () => {
  test("the row of a key, a flush that is given up leaves no connection behind", async () => {
    await using locked = await lock("update keys set name = name");
    const { store, keyId } = locked;
    const flush = { ledger: "a", number: 1 };
    const add = () => store.usage.add([usageIncrement({ keyId, minute: 1 })], flush);
    await expect(add()).rejects.toThrow("statement timeout (57014)");
    expect(await locked.countConnections("waiting")).toBe(0);
    await locked.release();
    await add();
    expect(await store.usage.sumOfKeys()).toMatchObject({ requestCount: 1 });
  });

  test("the row of a key, a flush of many rows waits for longer", async () => {
    await using locked = await lock("update keys set name = name");
    const { store, keyId } = locked;
    const increments = Array.from({ length: 15_000 }, () => usageIncrement({ keyId, minute: 1 }));
    const added = store.usage.add(increments, { ledger: "a", number: 1 });
    await pollUntil(async () => (await locked.countConnections("waiting")) === 1);
    // The other one takes its time.
    await Bun.sleep(5000);
    await locked.release();
    await added;
    expect(await store.usage.sumOfKeys()).toMatchObject({ requestCount: increments.length });
  });

  test("the table of keys, look-ups that are given up leave no connections behind", async () => {
    await using locked = await lock("lock table keys in access exclusive mode");
    let most = 0;
    for (let round = 0; round < 10; round++) {
      const names = Array.from({ length: 4 }, (_, n) => `key ${n}`);
      const found = await Promise.allSettled(names.map(async (name) => locked.store.keys.findActive(name)));
      expect(found.map(({ status }) => status)).toEqual(names.map(() => "rejected"));
      most = Math.max(most, await locked.countConnections("all"));
    }
    expect(most).toBeLessThanOrEqual(mostConnections);
  });
});
