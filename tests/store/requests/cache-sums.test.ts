import { expect, test } from "bun:test";
import type { CacheGroup, CacheSums, RequestPosition } from "../../../src/store/requests/contract.ts";
import type { Store } from "../../../src/store/store.ts";
import { onEachEngine } from "../each-engine.ts";
import { requestRow, requestsOf } from "../logged-requests.ts";

const start = Date.parse("2026-05-02T12:00:00+09:00");
const hourMs = 3_600_000;

async function readAll({ requests }: Store, by: CacheGroup, since = start - hourMs): Promise<CacheSums[][]> {
  const pages: CacheSums[][] = [];
  let before: RequestPosition | undefined;
  do {
    const { sums, next } = await requests.cacheSums(by, since, before);
    pages.push(sums.toSorted((a, b) => String(a.of).localeCompare(String(b.of))));
    before = next;
  } while (before !== undefined);
  return pages;
}

const usage = (inputTokens: number, cachedInputTokens?: number) => ({
  inputTokens,
  outputTokens: 1,
  cachedInputTokens,
});

onEachEngine(({ openTestStore }) => {
  test("input and what of it was cached are added up by client, key, model and conversation", async () => {
    await using opened = await openTestStore(() => start);
    const changes = { kinds: ["drop_billing_line"], maxTokens: undefined } as const;
    const rows = [
      requestRow(start - 2 * hourMs, { clientProgram: "early/1" }, usage(100, 10)),
      requestRow(start, { clientProgram: "a/1", keyId: 1, conversation: 5, cacheLoss: "evicted" }, usage(100, 10)),
      requestRow(start, { clientProgram: "a/1", keyId: 2, conversation: 5, changes }, usage(300)),
      requestRow(start, { clientProgram: "b", keyId: 2, path: "/v1/messages" }, usage(100, 900)),
      requestRow(start, { clientProgram: "b", keyId: 2 }),
      requestRow(start, { clientProgram: "c", keyId: 2 }, usage(0)),
    ];
    await opened.store.usage.add([], undefined, [], requestsOf(...rows));
    const sums = { lostCount: 0, mendedCount: 0 };
    const a = { requestCount: 2, inputTokens: 400, cachedTokens: 10, lostCount: 1, mendedCount: 1 };
    const b = { requestCount: 1, inputTokens: 1000, cachedTokens: 900, ...sums };
    expect(await readAll(opened.store, "client")).toEqual([
      [
        { of: "a/1", ...a },
        { of: "b", ...b },
      ],
    ]);
    expect(await readAll(opened.store, "conversation")).toEqual([[{ of: 5, ...a }]]);
    expect((await readAll(opened.store, "key")).flat().map(({ of, inputTokens }) => [Number(of), inputTokens])).toEqual(
      [
        [1, 100],
        [2, 1300],
      ],
    );
    expect((await readAll(opened.store, "model")).flat()).toEqual([
      { of: "served", requestCount: 3, inputTokens: 1400, cachedTokens: 910, lostCount: 1, mendedCount: 1 },
    ]);
  });

  test("2,000 rows at a time, until the time is reached", async () => {
    await using opened = await openTestStore(() => start);
    const minutesAgo = (minutes: number, count: number) =>
      Array.from({ length: count }, () => requestRow(start - minutes * 60_000, {}, usage(1)));
    await opened.store.usage.add([], undefined, [], requestsOf(...minutesAgo(90, 3000), ...minutesAgo(30, 2500)));
    const pages = await readAll(opened.store, "client");
    expect(pages.map((page) => page.map(({ requestCount }) => requestCount))).toEqual([[2000], [500]]);
  });
});
