import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { onEachEngine } from "../../store/each-engine.ts";
import { type Admin, startAdmin, type Visitor } from "../support/admin-server.ts";
import type { UsageIncrement } from "../../../src/domain/usage.ts";

onEachEngine(({ engine }) => {
  let admin: Admin;
  let owner: Required<Visitor>;
  const minute = 60_000;
  const day = 1440 * minute;

  const used = (keyId: number, at: number, model: string, fields: Partial<UsageIncrement> = {}): UsageIncrement => ({
    keyId,
    minute: Math.floor(at / minute),
    lastClosedAt: at,
    requestCount: 1,
    inputTokens: 1_000_000,
    outputTokens: 500_000,
    model,
    ...fields,
  });

  beforeAll(async () => {
    admin = await startAdmin({ engine });
    owner = await admin.login();
    const { now } = admin.time;
    await admin.createKey("first");
    await admin.createKey("second");
    await admin.store.usage.add([
      used(1, now, "large", { cachedInputTokens: 400_000, reasoningTokens: 7 }),
      used(1, now - 3 * 60 * minute, "small"),
      used(2, now - 2 * day, "large", {
        inputTokens: 10,
        outputTokens: 0,
        cachedInputTokens: 500_000,
        cachedBesideInputTokens: 500_000,
      }),
      used(2, now - 40 * day, "large"),
    ]);
  });
  afterAll(() => admin.stop());

  const get = (path: string) => admin.send("GET", path, { as: owner });
  const put = (json: object) => admin.send("PUT", "/api/prices", { as: owner, json });

  // oxlint-disable-next-line typescript/no-explicit-any -- a wrong shape fails the test
  const rowsOf = async (query: string): Promise<any[]> => (await get(`/api/usage/models?${query}`)).json.rows;

  interface PricedRow {
    key_id: number;
    cost: number | null;
    cost_is_partial: boolean;
  }

  const countsOf = (row: PricedRow): PricedRow => ({ ...row, cost: null, cost_is_partial: false });

  const byText = (a: string, b: string): number => (a < b ? -1 : 1);

  test("usage is summed by model, by key, or by both, most tokens first", async () => {
    expect(await rowsOf("")).toMatchObject([
      {
        bucket_start: null,
        key_id: null,
        key_name: null,
        model: "large",
        request_count: 2,
        input_tokens: 1_000_010,
        cached_input_tokens: 900_000,
        reasoning_tokens: 7,
        cost: null,
      },
      { model: "small", request_count: 1 },
    ]);
    expect(await rowsOf("by=key&days=365")).toMatchObject([
      { key_id: 1, key_name: "first", model: null, request_count: 2 },
      { key_id: 2, key_name: "second", model: null, request_count: 2 },
    ]);
    expect((await rowsOf("by=key_model")).map((row) => `${row.key_id} ${row.model}`).toSorted(byText)).toEqual([
      "1 large",
      "1 small",
      "2 large",
    ]);
  });

  test("usage is summed by hour or by day in Seoul, oldest first", async () => {
    expect((await rowsOf("bucket=day")).map((row) => [row.bucket_start, row.model])).toEqual([
      ["2026-04-29T00:00:00.000+09:00", "large"],
      ["2026-05-01T00:00:00.000+09:00", "large"],
      ["2026-05-01T00:00:00.000+09:00", "small"],
    ]);
    expect((await rowsOf("bucket=hour&key_id=1")).map((row) => row.bucket_start)).toEqual([
      "2026-05-01T09:00:00.000+09:00",
      "2026-05-01T12:00:00.000+09:00",
    ]);
    expect(await rowsOf("model=small&days=1")).toHaveLength(1);
    expect(await rowsOf("model=small%00")).toEqual([]);
  });

  test.each([
    ["days=0", "days must be an integer from 1 to 365"],
    ["by=user", "by must be one of model, key, key_model"],
    ["bucket=week", "bucket must be one of none, hour, day"],
    ["bucket=hour&days=91", "days must be at most 90 if bucket is hour"],
    ["key_id=x", "key_id must be an integer of at least 1"],
    [`model=${"x".repeat(201)}`, "model must have at most 200 characters"],
  ])("the query %s gets 400", async (query, error) => {
    const response = await get(`/api/usage/models?${query}`);
    expect([response.status, response.json]).toEqual([400, { error }]);
  });

  describe("of more rows than fit", () => {
    let crowded: Admin;
    let reader: Required<Visitor>;
    const read = async (query: string) =>
      (await crowded.send("GET", `/api/usage/models?${query}`, { as: reader })).json;
    beforeAll(async () => {
      crowded = await startAdmin({ engine });
      reader = await crowded.login();
    });
    afterAll(() => crowded.stop());

    /** PostgreSQL has a few seconds for each. */
    async function addInParts(increments: readonly UsageIncrement[]): Promise<void> {
      for (let added = 0; added < increments.length; added += 200) {
        await crowded.store.usage.add(increments.slice(added, added + 200));
      }
    }

    test("the latest days stay, each of them whole", async () => {
      const days = Array.from({ length: 365 }, (_, ago) => crowded.time.now - ago * day);
      await addInParts(
        days.flatMap((at) => Array.from({ length: 14 }, (_, n) => used(1, at, `model ${n}`, { outputTokens: n }))),
      );
      const { rows, more } = await read("bucket=day&days=365");
      expect([rows.length, more]).toEqual([357 * 14, true]);
      expect([rows[0].bucket_start, rows.at(-1).bucket_start]).toEqual([
        "2025-05-10T00:00:00.000+09:00",
        "2026-05-01T00:00:00.000+09:00",
      ]);
      expect(rows.slice(0, 2).map(({ output_tokens: tokens }: { output_tokens: number }) => tokens)).toEqual([13, 12]);
      expect(await read("bucket=day&days=357")).toMatchObject({ rows, more: false });
    });

    test("the counts of keys are the same with prices as without, and a cost that lacks models is partial", async () => {
      const names = Array.from({ length: 6000 }, (_, n) => ({
        name: `name ${n}`,
        at: crowded.time.now - (n % 30) * day,
      }));
      const rare = { inputTokens: 2, outputTokens: 1 };
      await addInParts(names.flatMap(({ name, at }) => [used(3, at, name), used(4, at, name, rare)]));
      await addInParts([used(5, crowded.time.now, "name 1")]);
      const models = [{ pattern: "*", valid_from: "2020-01-01", input: 1, cached_input: null, output: 2 }];
      const readWith = async (query: string, prices: object): Promise<{ rows: PricedRow[]; more: boolean }> => {
        await crowded.store.settings.set("prices", JSON.stringify({ energy: [], ...prices }));
        return read(query);
      };
      // The models of a day fit.
      for (const [query, cheapIsPartial] of [
        ["by=key&days=31", true],
        ["by=key&days=31&bucket=day", false],
      ] as const) {
        const without = await readWith(query, { currency: null, models: [] });
        const { rows, more } = await readWith(query, { currency: "EUR", models });
        expect([rows.map(countsOf), more]).toEqual([without.rows.map(countsOf), false]);
        const isPartial = (id: number): boolean =>
          rows.some(({ key_id: keyId, cost_is_partial: partial }) => keyId === id && partial);
        expect([3, 4, 5].map(isPartial)).toEqual([false, cheapIsPartial, false]);
      }
      expect((await read("by=key&days=31")).rows).toMatchObject([
        { key_id: 3, request_count: 6000 },
        { key_id: 1, request_count: 31 * 14 },
        { key_id: 5, request_count: 1 },
        { key_id: 4, request_count: 6000 },
      ]);
    });
  });

  describe("prices", () => {
    const price = { pattern: "*", valid_from: "2020-01-01", input: 1, cached_input: null, output: 2 };

    test("make costs, from the day on which they are valid, and by the pattern that fits best", async () => {
      const models = [
        price,
        { pattern: "lar*", valid_from: "2020-01-01", input: 10, cached_input: 1, output: 20 },
        { pattern: "large", valid_from: "2026-05-01", input: 100, cached_input: 10, output: 200 },
      ];
      const stored = { currency: "EUR", models, energy: [{ valid_from: "2026-01-01", per_kwh: 0.31 }] };
      expect((await put({ ...stored, unknown: 1 })).json).toEqual(stored);
      expect((await get("/api/prices")).json).toEqual(stored);
      // Uncached input, cached input, output; the second request reports its cached input beside the input.
      const large = 0.6 * 100 + 0.4 * 10 + 0.5 * 200 + (0.000_01 * 10 + 0.5 * 1);
      const rows = await rowsOf("");
      expect(rows[0]).toMatchObject({ model: "large", cost_is_partial: false });
      expect(rows[0].cost).toBeCloseTo(large, 6);
      expect(rows[1].cost).toBeCloseTo(2, 6);
      expect((await rowsOf("by=key"))[0].cost).toBeCloseTo(0.6 * 100 + 0.4 * 10 + 0.5 * 200 + 2, 6);
      expect((await get("/api/usage/models")).json.currency).toBe("EUR");
    });

    test("are never guessed", async () => {
      await put({ currency: "EUR", models: [{ ...price, pattern: "small" }], energy: [] });
      expect(await rowsOf("")).toMatchObject([
        { model: "large", cost: null },
        { model: "small", cost: 2 },
      ]);
      expect(await rowsOf("by=key&key_id=1")).toMatchObject([{ cost: 2, cost_is_partial: true }]);
    });

    test.each([
      [{ models: [price] }, "currency is required, such as EUR"],
      [{ currency: "euro" }, "currency is invalid"],
      [{ currency: "EUR", models: [{ ...price, input: -1 }] }, "models.0.input is invalid"],
      [{ currency: "EUR", models: [{ ...price, input: "1" }] }, "models.0.input is invalid"],
      [{ currency: "EUR", models: [price, { ...price, valid_from: "2026-02-31x" }] }, "models.1.valid_from is invalid"],
      [{ currency: "EUR", models: [{ ...price, pattern: "" }] }, "models.0.pattern is invalid"],
      [{ currency: "EUR", models: {} }, "models is invalid"],
      [{ currency: "EUR", models: Array.from({ length: 501 }, () => price) }, "models is invalid"],
      [{ currency: "EUR", energy: [{ per_kwh: 1 }] }, "energy.0.valid_from is invalid"],
    ])("with a mistake are refused: %j", async (json, error) => {
      const response = await put(json);
      expect([response.status, response.json]).toEqual([400, { error }]);
    });

    test("with a hostile pattern cost nothing", async () => {
      const pattern = "*a".repeat(99) + "*b";
      await put({ currency: "EUR", models: [{ ...price, pattern }], energy: [] });
      await admin.store.usage.add([used(1, admin.time.now, "a".repeat(200))]);
      const started = performance.now();
      expect((await rowsOf(`model=${"a".repeat(200)}`))[0].cost).toBeNull();
      expect(performance.now() - started).toBeLessThan(10_000);
    });
  });
});
