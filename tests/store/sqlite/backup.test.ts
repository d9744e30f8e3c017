import { expect, test } from "bun:test";
import { readdirSync, readFileSync, renameSync, statSync } from "node:fs";
import { backupDatabase } from "../../../src/store/sqlite/backup.ts";
import { createTempFolder } from "../../support/temp-folder.ts";
import { createKeys, openTestStore, type SqliteTestStore, usageIncrement } from "../test-store.ts";

const backUp = ({ file }: SqliteTestStore, target: string) => backupDatabase({ file, target, clock: Date.now });

test("a backup made under load is a consistent database", async () => {
  await using opened = await openTestStore(() => 29_000_000 * 60_000);
  await createKeys(opened.store, ["a"]);
  using copy = createTempFolder();
  const stop = new AbortController();
  let written = 0;
  const load = (async () => {
    while (!stop.signal.aborted) {
      await opened.store.usage.add([usageIncrement({ keyId: 1, minute: 29_000_000 + (written % 500) })]);
      written++;
    }
  })();
  await backUp(opened, copy.file("backup.db"));
  stop.abort();
  await load;
  expect(statSync(copy.file("backup.db")).mode & 0o777).toBe(0o600);
  expect(readdirSync(copy.path)).toEqual(["backup.db"]);

  renameSync(copy.file("backup.db"), copy.file("tollgate.db"));
  await using restored = await openTestStore(Date.now, copy);
  const [key] = await restored.store.keys.list();
  expect(await restored.store.keys.findActive("secret of a")).toEqual({ id: 1, rules: null, expiresAt: null });
  const minutes = await restored.store.usage.sumOfMinutes(29_000_000, 29_000_500);
  expect(minutes.requestCount).toBe(key?.requestCount ?? -1);
  expect(minutes.requestCount).toBeLessThanOrEqual(written);
});

test("of two backups to one file, one succeeds and one fails", async () => {
  await using opened = await openTestStore();
  const target = opened.folder.file("backup.db");
  const results = await Promise.allSettled([backUp(opened, target), backUp(opened, target)]);
  expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  expect(readFileSync(target).subarray(0, 15).toString()).toBe("SQLite format 3");
});
