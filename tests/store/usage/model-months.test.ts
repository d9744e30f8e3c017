import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { dayNumberFrom, dayNumberOf, minuteOf } from "../../../src/time/seoul.ts";
import { createRandom } from "../../support/random.ts";
import { onEachEngine } from "../each-engine.ts";
import { readBody, type TestEngine, usageIncrement } from "../test-store.ts";

const now = Date.parse("2026-05-01T12:00:00+09:00");
const minuteAt = (text: string): number => minuteOf(Date.parse(`${text}+09:00`));

const counters = `sum(request_count) as requests, sum(input_tokens) as input, sum(output_tokens) as output,
  sum(cached_input_tokens) as cached, sum(reasoning_tokens) as reasoning, sum(cached_beside_input_tokens) as beside`;

interface Sum {
  month: number;
  keyId: number;
  model: string;
  requests: number;
}

const months = ({ engine }: TestEngine) =>
  engine.rows<Sum>(
    sql.raw(`select month, key_id as "keyId", model, ${counters} from usage_model_month
      group by month, key_id, model order by month, key_id, model`),
    ["model"],
  );

/** The months that the rows of days add up to, counted here. */
async function monthsOfDays({ engine }: TestEngine): Promise<Sum[]> {
  const days = await engine.rows<Sum>(
    sql.raw(`select day as month, key_id as "keyId", model, ${counters} from usage_model_day
      group by day, key_id, model order by day, key_id, model`),
    ["model"],
  );
  const sums = new Map<string, Record<string, unknown>>();
  for (const { month: day, keyId, model, ...counts } of days) {
    const month = dayNumberFrom(`${new Date(day * 86_400_000).toISOString().slice(0, 7)}-01`);
    const id = JSON.stringify([month, keyId, model]);
    const sum: Record<string, unknown> = sums.get(id) ?? { month, keyId, model };
    sums.set(id, sum);
    for (const [name, count] of Object.entries(counts)) sum[name] = Number(sum[name] ?? 0) + count;
  }
  const order = ({ month, keyId, model }: Sum): string => `${String(month).padStart(6)} ${keyId} ${model}`;
  return ([...sums.values()] as unknown as Sum[]).toSorted((a, b) => (order(a) < order(b) ? -1 : 1));
}

onEachEngine(({ openTestEngine }) => {
  test("a month begins and ends at midnight in Seoul", async () => {
    await using opened = await openTestEngine(() => now);
    const used = (at: string, requestCount: number) =>
      usageIncrement({ keyId: 1, minute: minuteAt(at), model: "m", requestCount });
    await opened.store.usage.add([
      used("2026-02-28T23:59", 1),
      used("2026-03-01T00:00", 20),
      used("2026-03-31T23:59", 300),
      used("2026-04-01T00:00", 4000),
      used("1969-12-31T23:59", 50_000),
    ]);
    expect(await months(opened)).toMatchObject(
      [
        ["1969-12-01", 50_000],
        ["2026-02-01", 1],
        ["2026-03-01", 320],
        ["2026-04-01", 4000],
      ].map(([day, requests]) => ({ month: dayNumberFrom(String(day)), requests })),
    );
  });

  test("the months are the sums of their days, whatever is added, corrected or deleted", async () => {
    await using opened = await openTestEngine(() => now);
    const random = createRandom(33);
    const between = (low: number, high: number): number => low + random.below(high - low + 1);
    const last = dayNumberOf(now);
    for (let flush = 0; flush < 40; flush++) {
      const increments = Array.from({ length: between(1, 12) }, () =>
        usageIncrement({
          keyId: between(1, 3),
          minute: minuteOf(now) - between(0, 120 * 1440),
          model: `model ${between(1, 3)}`,
          requestCount: between(0, 3),
          inputTokens: between(0, 1_000_000_000),
          outputTokens: between(0, 9),
          cachedInputTokens: between(0, 9),
          reasoningTokens: between(0, 9),
          cachedBesideInputTokens: between(0, 9),
        }),
      );
      await opened.store.usage.add(increments);
      if (flush % 5 > 0) continue;
      const day = last - between(0, 120);
      await opened.engine.rows(sql.raw(`delete from usage_model_day where day between ${day - 3} and ${day}`));
      await opened.engine.rows(
        sql.raw(`update usage_model_day set input_tokens = input_tokens + 5, request_count = 1 where key_id = 2`),
      );
      expect(await months(opened)).toEqual(await monthsOfDays(opened));
    }
    expect((await months(opened)).length).toBeGreaterThan(20);
    await opened.engine.rows(sql.raw("delete from usage_model_day"));
    expect(await months(opened)).toEqual([]);
  });

  test("costs are read from the months within a range, and from the days around them", async () => {
    await using opened = await openTestEngine(() => now);
    const { usage } = opened.store;
    const [firstDay, lastDay] = [dayNumberFrom("2026-01-31"), dayNumberFrom("2026-04-01")];
    await usage.add(
      Array.from({ length: 100 }, (_, ago) =>
        usageIncrement({ keyId: 1, minute: minuteOf(now) - ago * 1440, model: "m" }),
      ),
    );
    // Tells them from the days.
    await opened.engine.rows(sql.raw("update usage_model_month set request_count = request_count + 1000"));
    const days = lastDay - firstDay + 1;
    for (const [by, keyId, requests] of [
      ["model", undefined, 2000 + days],
      ["key", undefined, 2000 + days],
      ["model", 1, 2000 + days],
      ["day", undefined, days],
    ] as const) {
      const range = { firstDay, lastDay, by, keyId, hiddenIds: [], prices: [], limit: 500 };
      const { rows } = await readBody(usage.costs(range));
      expect([by, keyId, rows.reduce((sum, { requestCount }) => sum + requestCount, 0)]).toEqual([by, keyId, requests]);
    }
  });
});
