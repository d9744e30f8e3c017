import { expect, test } from "bun:test";
import type { RequestPosition, RequestTrait } from "../../../src/store/requests/contract.ts";
import { readSums } from "../../../src/store/requests/sums.ts";
import type { Store } from "../../../src/store/store.ts";
import { countUsage } from "../../../src/domain/usage.ts";
import { onEachEngine } from "../each-engine.ts";
import { addRequests, requestRow } from "../logged-requests.ts";

const start = Date.parse("2026-05-02T00:00:02+09:00");
const hourMs = 3_600_000;

const tokens = { inputTokens: 100, outputTokens: 10, cachedInputTokens: 40 };

/** Each value with the number of requests that have it, and their tokens. */
async function sumsBy({ requests }: Store, trait: RequestTrait): Promise<unknown[]> {
  const { sums } = await readSums(requests, [trait], {}, 10);
  return sums
    .map((one) => [one[trait], one.requestCount, one.promptTokens])
    .toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
}

onEachEngine(({ openTestStore }) => {
  test("cached input that was counted beside the input is part of the prompt, however its path is written", async () => {
    await using opened = await openTestStore(() => start);
    const { store } = opened;
    const beside = countUsage(tokens, true);
    await addRequests(
      store,
      requestRow(start, { path: "/v1//messages" }, beside),
      requestRow(start, { path: "/v1/%6dessages" }, beside),
      requestRow(start, { path: "/v1/messages" }, beside),
      requestRow(start, { path: "/v1//chat/completions" }, countUsage(tokens, false)),
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
    await addRequests({ usage }, ...minutesAgo(90, 3000), ...minutesAgo(30, 4500));
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
