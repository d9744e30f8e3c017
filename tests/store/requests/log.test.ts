import { expect, test } from "bun:test";
import type { RequestFilter, RequestLogStore, RequestPosition } from "../../../src/store/requests/contract.ts";
import { createSqlStore } from "../../../src/store/sql-store.ts";
import { defaultRetention } from "../../../src/store/retention.ts";
import { noUsage } from "../../../src/domain/usage.ts";
import { onEachEngine } from "../each-engine.ts";
import { clientRules } from "../../../src/domain/models.ts";
import { addRequests, listedRequest, requestRow, requestsOf } from "../logged-requests.ts";
import { maintain, createKeys, usageIncrement } from "../test-store.ts";

const dayMs = 86_400_000;
const start = Date.parse("2026-05-02T12:00:00+09:00");

async function listAll(log: RequestLogStore, filter: RequestFilter = {}, limit = 100): Promise<string[]> {
  const found: string[] = [];
  let before: RequestPosition | undefined;
  do {
    const { requests, next } = await log.list(filter, limit, before);
    found.push(...requests.map(({ requestId }) => requestId));
    before = next;
  } while (before !== undefined);
  return found;
}

onEachEngine(({ openTestEngine, openTestStore }) => {
  test("a request is written with all that is known of it, and read as it was", async () => {
    await using opened = await openTestStore(() => start);
    const { usage, requests, keys } = opened.store;
    const [id = 0] = await createKeys(opened.store, ["a"]);
    const changes = {
      kinds: ["model", "max_tokens", "stream_usage", ...clientRules] as const,
      maxTokens: { from: 9000, to: 512 },
    };
    const cacheLoss = "system_changed";
    const expectation = { tokens: 100, toRead: 20, isOwn: true, elsewhere: 90 };
    const tokens = { inputTokens: 30, outputTokens: 4, cachedInputTokens: 20, reasoningTokens: 3 };
    await addRequests(
      { usage },
      requestRow(
        start,
        {
          keyId: id,
          changes,
          reason: "load",
          expectation,
          requestClass: "subagent",
          conversation: 2 ** 52 - 1,
          cacheLoss,
          code: "upstream_error",
          cause: "ECONNRESET",
          message: "Out of memory",
          estimatedTokens: 9,
          sends: 2,
          waitedFor: "backend",
          priority: "low",
          traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
        },
        tokens,
      ),
    );
    const written = {
      ...listedRequest,
      id: 1,
      endedAt: start,
      keyId: id,
      keyName: "a",
      conversation: 2 ** 52 - 1,
      cacheLoss,
      changes: ["model", "max_tokens", "stream_usage", ...clientRules] as never,
      message: "Out of memory",
      waitedFor: "backend",
      priority: "low",
      traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
    };
    expect(await requests.list({}, 10)).toEqual({ requests: [written], next: undefined });
    expect(await requests.lastId()).toBe(1);
    await keys.delete(id);
    expect((await requests.list({}, 10)).requests[0]?.keyName).toBe("a");
    expect(await requests.keyNames([id, 77])).toEqual([[id, "a"]]);
  });

  test("a flush that is sent again writes its requests once", async () => {
    await using opened = await openTestStore(() => start);
    const { usage, requests } = opened.store;
    for (let tries = 0; tries < 2; tries++) {
      await usage.add([], { ledger: "l", number: 1 }, [], requestsOf(requestRow(start)));
    }
    expect(await listAll(requests)).toEqual(["req-1"]);
  });

  test("hostile texts are cut and cleaned, and do not keep the flush from being written", async () => {
    await using opened = await openTestStore(() => start);
    const { usage, requests } = opened.store;
    const row = requestRow(start, {
      modelAsked: "a\0b\ud800",
      modelSent: "x".repeat(70_000),
      path: `/v1/${"y".repeat(9000)}`,
    });
    await usage
      .add([usageIncrement({ keyId: 1, minute: 5, model: "a\0b" })], undefined, [], requestsOf(row))
      .catch(() => {});
    await usage.add([usageIncrement({ keyId: 1, minute: 5 })], undefined, [], requestsOf(row));
    const [found] = (await requests.list({}, 1)).requests;
    expect(found).toMatchObject({ modelAsked: "a\ufffdb\ufffd", modelSent: "x".repeat(200) });
    expect(found?.path).toHaveLength(300);
  });

  test("the tokens of a response that two keys read in one flush are those that it adds for each", async () => {
    await using opened = await openTestStore(() => start);
    const { usage, requests } = opened.store;
    const read = { responseId: "r", keyId: 1, closedAt: start, inputTokens: 6, outputTokens: 2 };
    await usage.add([], undefined, [read]);
    await usage.add(
      [],
      undefined,
      [read, { ...read, keyId: 2 }, { ...read, as: "created" }],
      requestsOf(requestRow(start, { keyId: 1 }, read, "r"), requestRow(start, { keyId: 2 }, read, "r")),
    );
    const { requests: listed } = await requests.list({}, 10);
    expect(listed.map(({ keyId, inputTokens }) => [keyId, inputTokens])).toEqual([
      [2, 6],
      [1, 0],
    ]);
  });

  test("the tokens of a response that was counted before are those that it adds", async () => {
    await using opened = await openTestStore(() => start);
    const { usage, requests } = opened.store;
    const add = (inputTokens: number, outputTokens: number) => {
      const response = { responseId: "r", keyId: 1, closedAt: start, inputTokens, outputTokens, cachedInputTokens: 8 };
      return usage.add([], undefined, [response], requestsOf(requestRow(start, {}, response, "r")));
    };
    await add(10, 2);
    await add(10, 7);
    const tokens = (await requests.list({}, 10)).requests.map((one) => [
      one.inputTokens,
      one.outputTokens,
      one.cachedInputTokens,
    ]);
    expect(tokens).toEqual([
      [0, 5, 0],
      [10, 2, 8],
    ]);
  });

  test("usage that comes later is added to the row of its request", async () => {
    await using opened = await openTestStore(() => start);
    const { usage, requests } = opened.store;
    const amendment = { requestId: "req-1", keyId: 1, responseId: null, inputTokens: 1, outputTokens: 6 };
    await addRequests({ usage }, requestRow(start, {}, { inputTokens: 10, outputTokens: 2 }));
    await usage.add([], undefined, [], { rows: [], amendments: [amendment, { ...amendment, requestId: "unknown" }] });
    expect((await requests.list({}, 10)).requests).toMatchObject([{ inputTokens: 11, outputTokens: 8 }]);
  });

  test("a request that ended long after it was counted gets its duration, and no other request under its id", async () => {
    await using opened = await openTestStore(() => start);
    const { usage, requests } = opened.store;
    const counted = { inputTokens: 10, outputTokens: 2, cachedInputTokens: 4 };
    const rows = [2, 3].map((durationMs) => requestRow(start, { durationMs }, counted));
    await addRequests({ usage }, ...rows);
    const end = { writtenUs: 2000, durationUs: 804_000, responseBytes: 7 };
    const amendment = { requestId: "req-1", keyId: 1, responseId: null, ...noUsage, end };
    await usage.add([], undefined, [], { rows: [], amendments: [amendment] });
    expect((await requests.list({}, 10)).requests).toMatchObject([
      { ...counted, durationMs: 3, endedAt: start, responseBytes: 321 },
      { ...counted, durationMs: 804, endedAt: start + 802, responseBytes: 7 },
    ]);
  });

  test("of requests that ended long after they were counted each gets its own, also under one id and with later usage", async () => {
    await using opened = await openTestStore(() => start);
    const { usage, requests } = opened.store;
    const ids = ["a", "b", "b", "c"];
    const counted = { inputTokens: 10, outputTokens: 2 };
    const rows = ids.map((requestId, index) => requestRow(start, { requestId, durationMs: index + 1 }, counted));
    const amendments = ids.map((requestId, index) => ({
      requestId,
      keyId: 1,
      responseId: null,
      inputTokens: 0,
      outputTokens: 0,
      end: { writtenUs: (index + 1) * 1000, durationUs: (index + 1) * 100_000, responseBytes: undefined },
    }));
    const later = { requestId: "c", keyId: 1, responseId: null, inputTokens: 1, outputTokens: 1 };
    const ofOther = { requestId: "a", keyId: 2, responseId: null, ...noUsage, end: amendments[0]?.end };
    await usage.add([], undefined, [], { ...requestsOf(...rows), amendments: [later, ...amendments, ofOther] });
    const listed = (await requests.list({}, 10)).requests;
    expect(listed.map(({ durationMs, endedAt, inputTokens }) => [durationMs, endedAt - start, inputTokens])).toEqual([
      [400, 396, 11],
      [300, 297, 10],
      [200, 198, 10],
      [100, 99, 10],
    ]);
  });

  test("a search looks at 2,000 rows at a time and finds what lies behind them", async () => {
    await using opened = await openTestEngine(() => start);
    const { usage, requests } = opened.store;
    const many = Array.from({ length: 4500 }, (_, n) =>
      requestRow(start + n, { requestId: `r${n}`, modelSent: n === 3 ? "rare" : "m" }),
    );
    await addRequests({ usage }, ...many);
    const first = await requests.list({ model: "rare" }, 10);
    expect(first).toEqual({ requests: [], next: { endedAt: start + 2500, id: 2501 } });
    expect(await listAll(requests, { model: "rare" }, 10)).toEqual(["r3"]);
    expect(await listAll(requests, {}, 50)).toHaveLength(4500);
  });

  test("old requests are deleted by age and by number, a bounded number at a time", async () => {
    let now = start;
    await using opened = await openTestEngine(() => now);
    const store = createSqlStore(opened.engine, () => now, {
      ...defaultRetention,
      requestLog: { days: 1, rows: 20 },
    });
    const { usage, requests } = store;
    const add = (count: number) =>
      addRequests({ usage }, ...Array.from({ length: count }, (_, n) => requestRow(now, { requestId: `${now}-${n}` })));
    await add(1200);
    await add(1);
    expect(await store.maintain()).toBe(true);
    expect((await listAll(requests)).length).toBeWithin(701, 1201);
    // What is written meanwhile does not stop it.
    await add(100);
    await maintain(store);
    expect(await listAll(requests)).toHaveLength(20);
    now += 2 * dayMs;
    await add(1);
    await maintain(store);
    expect(await listAll(requests)).toEqual([`${now}-0`]);
  });

  test("requests that seem to be of the future, because the clock was ahead, keep no old ones in the log", async () => {
    let now = start;
    await using opened = await openTestStore(() => now);
    const { usage, requests } = opened.store;
    const old = Array.from({ length: 10 }, (_, n) => requestRow(start - 8 * dayMs, { requestId: `old ${n}` }));
    const ahead = requestRow(start + 365 * dayMs, { requestId: "ahead" });
    await addRequests({ usage }, ahead, ...old, requestRow(start + dayMs, { requestId: "kept" }));
    now += 2000;
    await addRequests({ usage }, requestRow(now, { requestId: "new" }));
    await maintain(opened.store);
    expect(await listAll(requests)).toEqual(["new", "kept"]);
  });

  test("more requests of the future than a portion deletes go with an old one after them", async () => {
    await using opened = await openTestStore(() => start);
    const { usage, requests } = opened.store;
    const ahead = Array.from({ length: 108 }, (_, n) => requestRow(start + 365 * dayMs, { requestId: `ahead ${n}` }));
    const old = requestRow(start - 8 * dayMs, { requestId: "old" });
    await addRequests({ usage }, ...ahead, old, requestRow(start, { requestId: "kept" }));
    await maintain(opened.store);
    expect(await listAll(requests)).toEqual(["kept"]);
  });

  test("a clock that is behind deletes nothing", async () => {
    let now = start;
    await using opened = await openTestStore(() => now);
    const { usage, requests } = opened.store;
    await addRequests({ usage }, requestRow(start, { requestId: "r" }), requestRow(start));
    now -= 365 * dayMs;
    await addRequests({ usage }, requestRow(now, { requestId: "behind" }));
    await maintain(opened.store);
    expect((await listAll(requests)).length).toBe(3);
  });

  test("without traffic old requests are deleted too, some at a time", async () => {
    let now = start;
    await using opened = await openTestStore(() => now);
    const { usage, requests } = opened.store;
    const many = Array.from({ length: 700 }, (_, n) => requestRow(start, { requestId: `r${n}` }));
    await addRequests({ usage }, ...many);
    expect(await maintain(opened.store)).toBe(1);
    expect(await listAll(requests)).toHaveLength(700);
    now += 8 * dayMs;
    expect(await opened.store.maintain()).toBe(true);
    expect((await listAll(requests)).length).toBeWithin(200, 700);
    await maintain(opened.store);
    // The last one stays, so that no later one has its id.
    expect(await listAll(requests)).toEqual(["r699"]);
  });

  test("a log of 0 days is emptied, and filled again once it has days", async () => {
    let now = start;
    await using opened = await openTestEngine(() => now);
    const storeOf = (days: number) =>
      createSqlStore(opened.engine, () => now, { ...defaultRetention, requestLog: { days, rows: 1000 } });
    const [on, off] = [storeOf(7), storeOf(0)];
    const add = (...ids: string[]) => addRequests(on, ...ids.map((requestId) => requestRow(now, { requestId })));
    await add(...Array.from({ length: 400 }, (_, n) => `r${n}`));
    now += 2000;
    await maintain(off);
    expect(await listAll(off.requests)).toEqual([]);
    now += 2000;
    // For both the highest id is now lower than it was.
    for (const store of [off, on]) await maintain(store);
    await add("d");
    expect(await listAll(on.requests)).toEqual(["d"]);
    now += 2000;
    await maintain(off);
    expect(await listAll(on.requests)).toEqual([]);
  });
});
