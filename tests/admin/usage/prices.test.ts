import { beforeAll, describe, expect, test } from "bun:test";
import { onEachEngine } from "../../store/each-engine.ts";
import { shared } from "../../support/shared.ts";
import { startAdmin } from "../support/admin-server.ts";
import { used } from "./used.ts";

onEachEngine(({ engine }) => {
  const minute = 60_000;
  const day = 1440 * minute;

  const admin = shared(() => startAdmin({ engine }));
  const owner = shared(() => admin.login());
  beforeAll(async () => {
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

  const get = (path: string) => admin.send("GET", path, { as: owner });
  const put = (json: object) => admin.send("PUT", "/api/prices", { as: owner, json });

  // oxlint-disable-next-line typescript/no-explicit-any -- a wrong shape fails the test
  const rowsOf = async (query: string): Promise<any[]> => (await get(`/api/usage/costs?${query}`)).json.rows;

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
      const rows = await rowsOf("by=model");
      expect(rows[0]).toMatchObject({ model: "large", cost_is_partial: false });
      expect(rows[0].cost).toBeCloseTo(large, 6);
      expect(rows[1].cost).toBeCloseTo(2, 6);
      expect((await rowsOf("by=key"))[0].cost).toBeCloseTo(0.6 * 100 + 0.4 * 10 + 0.5 * 200 + 2, 6);
      expect((await get("/api/usage/costs")).json.currency).toBe("EUR");
    });

    test("say when they were last changed, beside the costs that they make", async () => {
      expect((await put({ currency: "EUR", models: [price], energy: [] })).status).toBe(200);
      const { prices_changed_at } = (await get("/api/usage/costs")).json;
      expect(Date.parse(prices_changed_at)).toBe(admin.time.now);
    });

    test("are never guessed", async () => {
      await put({ currency: "EUR", models: [{ ...price, pattern: "small" }], energy: [] });
      expect(await rowsOf("by=model")).toMatchObject([
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
      [{ currency: "EUR", models: [{ ...price, valid_from: "2025-02-29" }] }, "models.0.valid_from is invalid"],
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
      expect((await rowsOf("by=model"))[0].cost).toBeNull();
      expect(performance.now() - started).toBeLessThan(10_000);
    });
  });
});
