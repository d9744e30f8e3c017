import { expect, test } from "bun:test";
import type { RequestPosition } from "../../../src/store/requests/contract.ts";
import { onEachEngine } from "../each-engine.ts";
import { requestRow, requestsOf } from "../logged-requests.ts";

const start = Date.parse("2026-05-02T12:00:00+09:00");

onEachEngine(({ openTestStore }) => {
  test("requests are added up by client, class, backend, model, path and what mended them", async () => {
    await using opened = await openTestStore(() => start);
    const { usage, requests } = opened.store;
    const claude = {
      clientProgram: "claude-cli/2.1.332",
      requestClass: "main",
      path: "/v1/messages",
      backend: "one",
      modelSent: "m",
    };
    const mended = { kinds: ["model", "drop_billing_line"] as const, maxTokens: undefined };
    const tokens = { inputTokens: 100, outputTokens: 10, cachedInputTokens: 40 };
    await usage.add(
      [],
      undefined,
      [],
      requestsOf(
        requestRow(start - 5000, { ...claude, keyId: 1 }, tokens),
        requestRow(start - 4000, { ...claude, keyId: 2 }, tokens),
        requestRow(start - 3000, { ...claude, keyId: 2, changes: mended }, tokens),
        requestRow(start - 2000, { ...claude, keyId: 2, status: 400 }),
        // Our own 400 is none of the backend's.
        requestRow(start - 1000, { ...claude, keyId: 2, status: 400, outcome: "refused" }),
        requestRow(start, { clientProgram: undefined, keyId: 2, modelSent: undefined, backend: undefined }, tokens),
      ),
    );
    const { sums, next } = await requests.sumClients({});
    expect(next).toBeUndefined();
    const common = { client: "claude-cli/2.1.332", requestClass: "main", backend: "one", modelSent: "m" };
    const unnamed = { client: null, requestClass: null, backend: null, modelSent: null };
    const none = { promptTokens: 0, fromCacheTokens: 0, outputTokens: 0 };
    const own = { ...common, isRefused: false, clientRules: [] };
    expect(sums).toHaveLength(4);
    expect(sums).toEqual(
      expect.arrayContaining([
        { ...own, requestCount: 3, promptTokens: 280, fromCacheTokens: 80, outputTokens: 20 },
        { ...own, isRefused: true, requestCount: 1, ...none },
        {
          ...own,
          clientRules: ["drop_billing_line"],
          requestCount: 1,
          promptTokens: 140,
          fromCacheTokens: 40,
          outputTokens: 10,
        },
        { ...own, ...unnamed, requestCount: 1, promptTokens: 100, fromCacheTokens: 40, outputTokens: 10 },
      ]),
    );
    expect((await requests.sumClients({ keyId: 1 })).sums).toMatchObject([{ requestCount: 1, promptTokens: 140 }]);
    expect((await requests.sumClients({ since: start - 500 })).sums).toMatchObject([{ client: null, requestCount: 1 }]);
  });

  test("a long log is added up part by part, and no request twice or never", async () => {
    await using opened = await openTestStore(() => start);
    const rows = Array.from({ length: 4500 }, (_, at) => requestRow(start - 5000 + at, { requestId: `r${at}` }));
    await opened.store.usage.add([], undefined, [], requestsOf(...rows));
    const counts: number[] = [];
    let before: RequestPosition | undefined;
    do {
      const { sums, next } = await opened.store.requests.sumClients({}, before);
      counts.push(sums.reduce((sum, { requestCount }) => sum + requestCount, 0));
      before = next;
    } while (before !== undefined);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(4500);
    expect(Math.max(...counts)).toBeLessThanOrEqual(2000);
  });
});
