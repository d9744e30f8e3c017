import { beforeAll, expect, test } from "bun:test";
import { shared } from "../../support/shared.ts";
import { pricesSetting } from "../../../src/admin/usage/prices.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { backendOf, fileCatalog, modelOf } from "../../support/catalog.ts";
import { addRequests, requestRow } from "../../store/logged-requests.ts";
import { startAdmin } from "../support/admin-server.ts";

const tokens = { inputTokens: 1000, outputTokens: 10, cachedInputTokens: 250 };
const hourMs = 3_600_000;

onEachEngine(({ engine }) => {
  let keyId: number;
  const admin = shared(() =>
    startAdmin({
      engine,
      catalog: () => fileCatalog([backendOf("one")], [modelOf("plain", ["one"], { servedAs: "served-plain" })]),
    }),
  );
  const owner = shared(() => admin.login());
  beforeAll(async () => {
    ({ id: keyId } = await admin.createKey("first"));
    const { now } = admin.time;
    const claude = { clientProgram: "claude-cli/2.1.332", path: "/v1/messages", modelSent: "served-plain", keyId };
    const rows = [
      requestRow(now - 48 * hourMs, claude, tokens),
      requestRow(now - 9000, { ...claude, requestClass: "main", conversation: 77 }, tokens),
      requestRow(now - 8000, { ...claude, requestClass: "compaction" }, { ...tokens, inputTokens: 3500 }),
      requestRow(now - 7000, { ...claude, clientProgram: "claude-cli/2.1.100", status: 404 }),
      requestRow(now - 6000, { ...claude, cacheLoss: "evicted", keyId: 4711 }, tokens),
      requestRow(now - 5000, { keyId: undefined, clientProgram: undefined, modelSent: "other" }, tokens),
    ];
    await addRequests(admin.store, ...rows);
  });

  const get = async (query: string) => (await admin.send("GET", `/api/requests/groups?${query}`, { as: owner })).json;
  const of = (body: { rows: { name: string | null; id: number | null; request_count: number }[] }) =>
    body.rows.map(({ name, id, request_count: requests }) => `${name ?? id} ${requests}`).join(", ");

  test("programs, with whole prompts, what came from caches, and all sums", async () => {
    const body = await get("");
    expect(body).toMatchObject({
      by: "program",
      counted_from: null,
      currency: null,
      group_count: 2,
      total: {
        request_count: 6,
        prompt_tokens: 8500,
        from_cache_tokens: 1250,
        lost_count: 1,
        output_tokens: 50,
        cost: null,
      },
      rows: [
        { name: "claude-cli", request_count: 5, prompt_tokens: 7500, from_cache_tokens: 1000, lost_count: 1 },
        { name: null, id: null, request_count: 1, prompt_tokens: 1000 },
      ],
    });
    expect(body.classes).toEqual([
      { class: "compaction", prompt_tokens: 3750 },
      { class: null, prompt_tokens: 3500 },
      { class: "main", prompt_tokens: 1250 },
    ]);
  });

  test.each([
    ["client", "claude-cli/2.1.332 4, null 1, claude-cli/2.1.100 1"],
    ["class", "compaction 1, null 4, main 1"],
    ["key", "first 4, 4711 1, null 1"],
    ["model", "served-plain 5, other 1"],
    ["path", "/v1/messages 5, /v1/chat/completions 1"],
    ["status", "200 5, 404 1"],
    ["outcome", "completed 6"],
    ["conversation", "null 5, 77 1"],
    ["backend", "127.0.0.1:8000 6"],
    ["address", "192.0.2.7 6"],
  ])("by %s, most input first", async (by, expected) => {
    expect(of(await get(`by=${by}`))).toBe(expected);
  });

  test("those that match all filters of the log, and the largest ones", async () => {
    expect(of(await get(`by=class&client=claude-cli&key_id=${keyId}&since=2026-05-01T00:00:00Z`))).toBe(
      "compaction 1, main 1, null 1",
    );
    expect(of(await get("by=class&until=2026-05-01T00:00:00%2B09:00"))).toBe("null 1");
    expect(await get("by=class&limit=1")).toMatchObject({
      group_count: 3,
      rows: [{ name: "compaction" }],
      total: { request_count: 6 },
    });
    for (const query of ["by=weather", "limit=0", "status=9", "since=yesterday"])
      expect((await admin.send("GET", `/api/requests/groups?${query}`, { as: owner })).status).toBe(400);
  });

  test("with the price of each model on its day", async () => {
    const price = { pattern: "plain", cached_input: 1, output: 0 };
    const models = [
      { ...price, valid_from: "2026-01-01", input: 1_000_000 },
      { ...price, valid_from: "2026-05-01", input: 1000 },
    ];
    await admin.store.settings.set(pricesSetting, JSON.stringify({ currency: "EUR", models, energy: [] }));
    const body = await get("by=model");
    expect(body.currency).toBe("EUR");
    const today = ((1000 + 3500 + 1000) * 1000 + 3 * 250) / 1_000_000;
    const before = (1000 * 1_000_000 + 250) / 1_000_000;
    expect(body.rows).toMatchObject([
      { name: "served-plain", request_count: 5, cost: expect.closeTo(today + before, 9), cost_is_partial: false },
      { name: "other", cost: null, cost_is_partial: true },
    ]);
    expect(body.total).toMatchObject({ cost: expect.closeTo(today + before, 9), cost_is_partial: true });
    await admin.store.settings.set(pricesSetting, JSON.stringify({ currency: null, models: [], energy: [] }));
  });
});

test("a log of any length costs a hundred reads at most, and it is said from when on they are", async () => {
  let reads = 0;
  const endedAt = Date.parse("2026-05-01T11:00:00+09:00");
  const sums = { requestCount: 2000, lostCount: 0, promptTokens: 10, fromCacheTokens: 0, outputTokens: 1 };
  await using long = await startAdmin({
    store: (real) => ({
      ...real,
      requests: {
        ...real.requests,
        async sum() {
          reads += 1;
          return {
            sums: [{ ...sums, client: `a/${reads % 7}`, requestClass: "main" }] as never,
            next: { id: 1, endedAt },
          };
        },
      },
    }),
  }).then((started) => Object.assign(started, { [Symbol.asyncDispose]: () => started.stop() }));
  const body = (await long.send("GET", "/api/requests/groups", { as: await long.login() })).json;
  expect(reads).toBe(100);
  expect(body).toMatchObject({
    counted_from: "2026-05-01T11:00:00.000+09:00",
    group_count: 1,
    rows: [{ name: "a", request_count: 200_000, prompt_tokens: 1000 }],
  });
});
