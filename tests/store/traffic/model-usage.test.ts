import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { minuteOf } from "../../../src/time/seoul.ts";
import { onEachEngine } from "../each-engine.ts";
import { type TestEngine, usageIncrement } from "../test-store.ts";

const start = Date.parse("2026-05-02T12:00:00+09:00");
const minute = minuteOf(start);

const sumsOf = ({ engine }: TestEngine, table: string) =>
  engine.rows(
    sql`select key_id as "keyId", sum(request_count) as requests, sum(input_tokens) as input, sum(output_tokens) as output,
      sum(cached_input_tokens) as cached, sum(reasoning_tokens) as reasoning, count(*) as names
      from ${sql.raw(table)} group by key_id order by key_id`,
  );

onEachEngine(({ openTestEngine }) => {
  test("the sums by model hold each token of each request, by hour and by day", async () => {
    await using opened = await openTestEngine(() => start);
    const { usage } = opened.store;
    await usage.add([
      usageIncrement({ keyId: 1, minute, model: "a", cachedInputTokens: 7, reasoningTokens: 1 }),
      usageIncrement({ keyId: 1, minute, model: "b" }),
      usageIncrement({ keyId: 1, minute: minute + 60, model: "a" }),
      usageIncrement({ keyId: 2, minute }),
    ]);
    const response = { responseId: "r", keyId: 2, closedAt: start, model: "a", inputTokens: 5, outputTokens: 3 };
    await usage.add([], undefined, [{ ...response, cachedInputTokens: 4, reasoningTokens: 2 }]);
    await usage.add([], undefined, [{ ...response, outputTokens: 9, cachedInputTokens: 4, reasoningTokens: 2 }]);
    const sums = [
      { keyId: 1, requests: 3, input: 30, output: 6, cached: 7, reasoning: 1 },
      { keyId: 2, requests: 1, input: 15, output: 11, cached: 4, reasoning: 4 },
    ];
    expect(await sumsOf(opened, "usage_model_day")).toMatchObject(sums);
    expect(await sumsOf(opened, "usage_model_hour")).toMatchObject(sums);
  });

  test("a key has at most 200 names a day; the rest count together", async () => {
    await using opened = await openTestEngine(() => start);
    const { usage } = opened.store;
    const named = (name: string, keyId = 1) => usageIncrement({ keyId, minute, model: name });
    await usage.add(Array.from({ length: 150 }, (_, n) => named(`first ${n}`)));
    await usage.add([named("first 1"), ...Array.from({ length: 150 }, (_, n) => named(`second ${n}`)), named("b", 2)]);
    await usage.add([named("third"), named("first 149")]);
    expect(await sumsOf(opened, "usage_model_day")).toMatchObject([
      { keyId: 1, requests: 303, names: 201 },
      { keyId: 2, requests: 1, names: 1 },
    ]);
    await usage.add([usageIncrement({ keyId: 1, minute: minute + 1440, model: "third" })]);
    expect(await sumsOf(opened, "usage_model_day")).toMatchObject([{ requests: 304, names: 202 }, {}]);
  });

  test("names of a transaction that failed do not take the place of others", async () => {
    await using opened = await openTestEngine(() => start);
    const { usage } = opened.store;
    const names = Array.from({ length: 200 }, (_, n) => usageIncrement({ keyId: 1, minute, model: `lost ${n}` }));
    const impossible = { ...usageIncrement({ keyId: 1, minute }), requestCount: Number.NaN };
    expect((await usage.add([...names, impossible])).refused).toHaveLength(1);
    await usage.add([usageIncrement({ keyId: 1, minute, model: "new" })]);
    expect(await sumsOf(opened, "usage_model_day")).toMatchObject([{ requests: 1, names: 1 }]);
  });
});
