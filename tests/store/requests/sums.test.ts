import { expect, test } from "bun:test";
import type { RequestPosition, RequestTrait } from "../../../src/store/requests/contract.ts";
import { readSums } from "../../../src/store/requests/sums.ts";
import type { Store } from "../../../src/store/store.ts";
import { countUsage } from "../../../src/domain/usage.ts";
import { onEachEngine } from "../each-engine.ts";
import { requestRow, requestsOf } from "../logged-requests.ts";

const start = Date.parse("2026-05-02T00:00:02+09:00");
const hourMs = 3_600_000;

const claude = {
  clientProgram: "claude-cli/2.1.332",
  requestClass: "main",
  path: "/v1/messages",
  backend: "one",
  modelSent: "m",
};
const mended = { kinds: ["model", "drop_billing_line"] as const, maxTokens: undefined };
const tokens = { inputTokens: 100, outputTokens: 10, cachedInputTokens: 40 };

/** Each value with the number of requests that have it, and their tokens. */
async function sumsBy({ requests }: Store, trait: RequestTrait): Promise<unknown[]> {
  const { sums } = await readSums(requests, [trait], {}, 10);
  return sums
    .map((one) => [one[trait], one.requestCount, one.promptTokens])
    .toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
}

onEachEngine(({ openTestStore }) => {
  test("requests are added up by what they have in common, alone and together", async () => {
    await using opened = await openTestStore(() => start);
    const { store } = opened;
    await store.usage.add(
      [],
      undefined,
      [],
      requestsOf(
        // The day before.
        requestRow(
          start - 5000,
          { ...claude, keyId: 1, conversation: 5, cacheLoss: "evicted" },
          countUsage(tokens, true),
        ),
        requestRow(start - 1500, { ...claude, keyId: 2, conversation: 0 }, { ...tokens, cachedInputTokens: 101 }),
        requestRow(start - 1000, { ...claude, keyId: 2, changes: mended }, { inputTokens: 100, outputTokens: 10 }),
        requestRow(start - 900, { ...claude, keyId: 2, status: 400 }),
        // Our own 400 is none of the backend's.
        requestRow(start - 800, { ...claude, keyId: 2, status: 400, outcome: "refused" }),
        requestRow(
          start,
          { clientProgram: undefined, keyId: undefined, modelSent: undefined, backend: undefined },
          tokens,
        ),
      ),
    );
    const own = { client: "claude-cli/2.1.332", requestClass: "main", backend: "one", modelSent: "m" };
    const unnamed = { client: null, requestClass: null, backend: null, modelSent: null };
    const none = { lostCount: 0, promptTokens: 0, fromCacheTokens: 0, outputTokens: 0 };
    const { sums, next } = await store.requests.sum(
      ["client", "requestClass", "backend", "modelSent", "isRefused", "clientRules"],
      {},
    );
    expect(next).toBeUndefined();
    expect(sums).toHaveLength(4);
    const sent = { ...own, isRefused: false, clientRules: [] };
    expect(sums).toEqual(
      expect.arrayContaining([
        { ...sent, requestCount: 3, lostCount: 1, promptTokens: 341, fromCacheTokens: 141, outputTokens: 20 },
        { ...sent, isRefused: true, ...none, requestCount: 1 },
        {
          ...sent,
          clientRules: ["drop_billing_line"],
          ...none,
          requestCount: 1,
          promptTokens: 100,
          outputTokens: 10,
        },
        {
          ...sent,
          ...unnamed,
          requestCount: 1,
          lostCount: 0,
          promptTokens: 100,
          fromCacheTokens: 40,
          outputTokens: 10,
        },
      ]),
    );
    const expected: Partial<Record<RequestTrait, unknown[]>> = {
      keyId: [
        [1, 1, 140],
        [2, 4, 301],
        [null, 1, 100],
      ],
      conversation: [
        [0, 1, 201],
        [5, 1, 140],
        [null, 4, 200],
      ],
      status: [
        [200, 4, 541],
        [400, 2, 0],
      ],
      outcome: [
        ["completed", 5, 541],
        ["refused", 1, 0],
      ],
      cacheLoss: [
        ["evicted", 1, 140],
        [null, 5, 401],
      ],
      // Half of the second one came from a cache.
      isReadAnew: [
        [false, 3, 201],
        [true, 3, 340],
      ],
      path: [
        ["/v1/chat/completions", 1, 100],
        ["/v1/messages", 5, 441],
      ],
      day: [
        [20_574, 1, 140],
        [20_575, 5, 401],
      ],
    };
    for (const [trait, found] of Object.entries(expected)) {
      expect([trait, await sumsBy(store, trait as RequestTrait)]).toEqual([trait, found]);
    }
    const byKey = await store.requests.sum(["client"], { keyId: 1 });
    expect(byKey.sums).toMatchObject([{ requestCount: 1, promptTokens: 140 }]);
    const late = await store.requests.sum(["client"], { since: start - 500 });
    expect(late.sums).toMatchObject([{ client: null, requestCount: 1 }]);
    const early = await store.requests.sum(["client"], { until: start - 2000, requestClass: "main" });
    expect(early.sums).toMatchObject([{ requestCount: 1 }]);
  });

  test("cached input that was counted beside the input is part of the prompt, however its path is written", async () => {
    await using opened = await openTestStore(() => start);
    const { store } = opened;
    const beside = countUsage(tokens, true);
    await store.usage.add(
      [],
      undefined,
      [],
      requestsOf(
        requestRow(start, { path: "/v1//messages" }, beside),
        requestRow(start, { path: "/v1/%6dessages" }, beside),
        requestRow(start, { path: "/v1/messages" }, beside),
        requestRow(start, { path: "/v1//chat/completions" }, countUsage(tokens, false)),
      ),
    );
    expect(await sumsBy(store, "path")).toEqual([
      ["/v1//chat/completions", 1, 100],
      ["/v1//messages", 1, 140],
      ["/v1/%6dessages", 1, 140],
      ["/v1/messages", 1, 140],
    ]);
  });

  test("a long log is added up 2,000 rows at a time, no request twice or never, until its time is reached", async () => {
    await using opened = await openTestStore(() => start);
    const { requests, usage } = opened.store;
    const minutesAgo = (minutes: number, count: number) =>
      Array.from({ length: count }, (_, at) =>
        requestRow(
          start - minutes * 60_000,
          { clientProgram: `client-${at % 3}` },
          { inputTokens: 1, outputTokens: 1 },
        ),
      );
    await usage.add([], undefined, [], requestsOf(...minutesAgo(90, 3000), ...minutesAgo(30, 4500)));
    const counts: number[] = [];
    let before: RequestPosition | undefined;
    do {
      const { sums, next } = await requests.sum(["client"], { since: start - hourMs }, before);
      counts.push(sums.reduce((sum, { requestCount }) => sum + requestCount, 0));
      before = next;
    } while (before !== undefined);
    expect(counts).toEqual([2000, 2000, 500]);
    const all = await readSums(requests, ["client"], {}, 10);
    expect(all.next).toBeUndefined();
    expect(all.sums.map(({ requestCount }) => requestCount)).toEqual([2500, 2500, 2500]);
    const part = await readSums(requests, ["client"], {}, 2);
    expect(part.sums.reduce((sum, { requestCount }) => sum + requestCount, 0)).toBe(4000);
    expect(part.next?.endedAt).toBe(start - 30 * 60_000);
  });
});

test("a log in which each request has a client of its own is not added up to its end", async () => {
  let reads = 0;
  const many = {
    sum: async () => {
      reads += 1;
      const none = { requestCount: 1, lostCount: 0, promptTokens: 1, fromCacheTokens: 0, outputTokens: 0 };
      const sums = Array.from({ length: 2000 }, (_, at) => ({ client: `${reads}-${at}`, ...none }));
      return { sums, next: { id: 1, endedAt: start } };
    },
  };
  const { sums, next } = await readSums(many as Pick<Store["requests"], "sum">, ["client"], {}, 100);
  expect([reads, sums.length, next?.id]).toEqual([10, 20_000, 1]);
});
