import { expect, test } from "bun:test";
import { getCache } from "../../../src/admin/requests/cache.ts";
import type { CacheQuery } from "../../../src/admin/requests/cache-contract.ts";
import { cacheRuleOf } from "../../../src/proxy/rewrite/client-rules.ts";
import type { CacheSums } from "../../../src/store/requests/contract.ts";

const now = Date.parse("2026-05-02T12:00:00+09:00");
const sums = (of: CacheSums["of"], inputTokens: number, cachedTokens: number, more: Partial<CacheSums> = {}) => ({
  of,
  requestCount: 50,
  inputTokens,
  cachedTokens,
  lostCount: 0,
  mendedCount: 0,
  ...more,
});

/** @param pages of the log, latest first */
function read(pages: readonly CacheSums[][], query: Partial<CacheQuery> = {}) {
  let page = 0;
  const unused = () => Promise.reject(new Error("not asked"));
  const get = getCache({
    clock: () => now,
    cacheRuleOf,
    store: {
      requests: {
        list: unused,
        listAfter: unused,
        lastId: unused,
        sumClients: unused,
        keyNames: async (ids) => ids.filter((id) => id === 1).map((id) => [id, "first"]),
        async cacheSums(_by, since) {
          expect(since).toBe(now - 3_600_000);
          const found = pages[page++] ?? [];
          return { sums: found, next: page < pages.length ? { id: 1, endedAt: now } : undefined };
        },
      },
    },
  });
  return get({ query: { by: "client", hours: 1, limit: 10, ...query } });
}

const claude = "claude-cli/2.1.330";

test("versions of a client, and parts of the log, are added up; most that came from no cache comes first", async () => {
  const {
    rows,
    since,
    is_reported: isReported,
  } = await read([[sums("b", 2000, 100), sums("a/1", 1000, 900)], [sums("a/2", 4000, 100, { lostCount: 3 })]]);
  expect([since, isReported]).toEqual([null, true]);
  expect(rows.map((row) => [row.name, row.request_count, row.input_tokens, row.cached_tokens, row.lost_count])).toEqual(
    [
      ["a", 100, 5000, 1000, 3],
      ["b", 50, 2000, 100, 0],
    ],
  );
});

test.each([
  ["less than a fifth, and the rule that mends it", [sums(claude, 1_000_000, 199_999)], [true, "drop_billing_line"]],
  ["a fifth", [sums(claude, 1_000_000, 200_000)], [false, "drop_billing_line"]],
  ["nothing at all, though a rule is known", [sums(claude, 1_000_000, 0)], [true, "drop_billing_line"]],
  ["nothing at all, as of a backend that reports nothing", [sums("curl/8", 1_000_000, 0)], [false, null]],
  ["nothing, while others had some", [sums("curl/8", 1_000_000, 0), sums("b", 1000, 500)], [true, null]],
  ["little, though the rule is in use", [sums(claude, 1_000_000, 1000, { mendedCount: 50 })], [true, null]],
  ["little of a client without much input", [sums(claude, 99_999, 1)], [false, "drop_billing_line"]],
  ["little of a few requests", [sums(claude, 1_000_000, 1, { requestCount: 9 })], [false, "drop_billing_line"]],
  ["an older version, which has no such line", [sums("claude-cli/2.1.10", 1_000_000, 1)], [true, null]],
])("a client of which came from a cache: %s", async (_, given, expected) => {
  const [row] = (await read([given])).rows;
  expect([row?.is_low, row?.rule]).toEqual(expected as never);
});

test("keys have their names, and conversations their numbers; neither is a client that has too little", async () => {
  const keys = await read([[sums(1, 1_000_000, 1), sums(2, 900_000, 0)]], { by: "key" });
  expect(keys.rows.map(({ name, id, is_low: isLow }) => [name, id, isLow])).toEqual([
    ["first", 1, false],
    [null, 2, false],
  ]);
  const conversations = await read([[sums(77, 1000, 1)]], { by: "conversation" });
  expect(conversations.rows.map(({ name, id }) => [name, id])).toEqual([[null, 77]]);
});
