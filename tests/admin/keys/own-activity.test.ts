import { beforeAll, expect, spyOn, test } from "bun:test";
import { requestRow, requestsOf } from "../../store/logged-requests.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { usageIncrement } from "../../store/test-store.ts";
import { shared } from "../../support/shared.ts";
import { startAdmin } from "../support/admin-server.ts";

onEachEngine(({ engine }) => {
  let own: { id: number; key: string };
  const admin = shared(() => startAdmin({ engine }));
  beforeAll(async () => {
    const { now } = admin.time;
    const minute = Math.floor(now / 60_000);
    own = await admin.createKey("shared");
    const other = await admin.createKey("other");
    const claude = {
      keyId: own.id,
      clientProgram: "claude-cli/2.1.332",
      requestClass: "main",
      clientAddress: "192.0.2.99",
      path: "/v1/messages",
    };
    const mended = { kinds: ["model", "drop_billing_line"] as const, maxTokens: undefined };
    const tokens = { inputTokens: 100, outputTokens: 10, cachedInputTokens: 300 };
    await admin.store.usage.add(
      [usageIncrement({ keyId: own.id, minute, model: "served", ...tokens, cachedBesideInputTokens: 300 })],
      undefined,
      [],
      requestsOf(
        requestRow(now - 3000, { ...claude, requestId: "a", changes: mended }, tokens),
        requestRow(now - 2000, { keyId: other.id, requestId: "b" }, tokens),
        requestRow(now - 1000, { ...claude, requestId: "c", status: 429, outcome: "limited", code: "tokens_per_day" }),
      ),
    );
  });

  const get = (key: string) =>
    admin.send("GET", "/api/own-key/activity", { headers: { authorization: `Bearer ${key}` } });

  test("the holder of a key sees its last requests by their ids, and neither those of others nor an address", async () => {
    const { status, json, text } = await get(own.key);
    expect(status).toBe(200);
    expect(json.requests).toMatchObject([
      { request_id: "c", status: 429, outcome: "limited", code: "tokens_per_day", input_tokens: null },
      {
        request_id: "a",
        client: "claude-cli/2.1.332",
        class: "main",
        input_tokens: 100,
        cached_input_tokens: 300,
        changes: ["model", "drop_billing_line"],
      },
    ]);
    expect(json.requests).toHaveLength(2);
    expect(text).not.toContain("192.0.2");
  });

  test("and which client rules acted, the share of the cache, and the cost where there are prices", async () => {
    const { json } = await get(own.key);
    expect(json.client_rules).toEqual([{ rule: "drop_billing_line", request_count: 1 }]);
    expect(json.this_month).toEqual({
      prompt_tokens: 400,
      from_cache_tokens: 300,
      currency: null,
      cost: null,
      cost_is_partial: true,
    });
    const price = { pattern: "served", valid_from: "2026-01-01", input: 10, cached_input: 1, output: 20 };
    await admin.store.settings.set("prices", JSON.stringify({ currency: "USD", models: [price], energy: [] }));
    expect((await get(own.key)).json.this_month).toMatchObject({
      currency: "USD",
      cost: (100 * 10 + 300 * 1 + 10 * 20) / 1e6,
      cost_is_partial: false,
    });
  });

  test("the sums of the month are of all models that the key named, however many", async () => {
    const many = await admin.createKey("many models");
    const noon = Date.parse("2026-05-01T12:00:00+09:00") / 60_000;
    // As many names a day as are kept apart.
    for (let day = 0; day < 6; day++) {
      const minute = noon + day * 24 * 60;
      const named = Array.from({ length: 200 }, (_, index) => `model-${day}-${index}`);
      await admin.store.usage.add(
        named.map((model) => usageIncrement({ keyId: many.id, minute, model, cachedInputTokens: 3 })),
      );
    }
    const { now } = admin.time;
    admin.time.now = (noon + 6 * 24 * 60) * 60_000;
    const { json } = await get(many.key);
    admin.time.now = now;
    expect(json.this_month).toMatchObject({ prompt_tokens: 6 * 200 * 10, from_cache_tokens: 6 * 200 * 3 });
  });

  test("a holder who asks 200 times at once is refused none, while the database reads for one after the other", async () => {
    let [running, most, calls] = [0, 0, 0];
    const { requests, keys } = admin.store;
    const list = requests.list.bind(requests);
    const counted = spyOn(requests, "list").mockImplementation(async (...given) => {
      calls += 1;
      running += 1;
      most = Math.max(most, running);
      return list(...given).finally(() => (running -= 1));
    });
    const described = spyOn(keys, "list");
    const authorization = `Bearer ${own.key}`;
    const ask = (path: string) => admin.send("GET", path, { headers: { authorization } });
    const paths = ["/api/own-key", "/api/own-key/activity"];
    const answers = await Promise.all(Array.from({ length: 200 }, (_, index) => ask(paths[index % 2] ?? "")));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(most).toBe(1);
    expect(calls + described.mock.calls.length).toBeLessThan(100);
    counted.mockRestore();
    described.mockRestore();
  });

  test("no other key does", async () => {
    expect((await get("wrong")).status).toBe(401);
  });
});
