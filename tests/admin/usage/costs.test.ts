import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { onEachEngine } from "../../store/each-engine.ts";
import { type Admin, startAdmin, type Visitor } from "../support/admin-server.ts";
import { used } from "./used.ts";

interface Costs {
  rows: (Record<string, unknown> & { request_count: number; cost: number | null; cost_is_partial: boolean })[];
  total: Costs["rows"][number] | null;
  next_cursor: string | null;
  currency: string | null;
}

const minute = 60_000;
const day = 1440 * minute;

const price = { pattern: "*", valid_from: "2020-01-01", input: 1, cached_input: null, output: 2 };

onEachEngine(({ engine }) => {
  let admin: Admin;
  let owner: Required<Visitor>;
  const setPrices = (...models: (typeof price)[]) =>
    admin.store.settings.set("prices", JSON.stringify({ currency: "EUR", models, energy: [] }));
  const send = (query: string) => admin.send("GET", `/api/usage/costs?${query}`, { as: owner });
  const read = async (query: string): Promise<Costs> => (await send(query)).json;

  async function readAll(query: string, limit: number): Promise<Costs["rows"]> {
    const rows: Costs["rows"] = [];
    for (let cursor = ""; ;) {
      const page = await read(`${query}&limit=${limit}${cursor === "" ? "" : `&cursor=${cursor}`}`);
      expect(page.rows.length).toBeLessThanOrEqual(limit);
      rows.push(...page.rows);
      if (page.next_cursor === null) return rows;
      cursor = page.next_cursor;
    }
  }

  const sumOf = (rows: Costs["rows"]): number => rows.reduce((sum, { cost }) => sum + (cost ?? 0), 0);

  describe("of a few requests", () => {
    beforeAll(async () => {
      admin = await startAdmin({ engine });
      owner = await admin.login();
      const { now } = admin.time;
      for (const fields of [{ owner: "Kim", tags: ["team-a", "batch"] }, { owner: "Kim" }, { tags: ["team-a"] }]) {
        await admin.send("POST", "/api/keys", {
          as: owner,
          json: { name: `key ${JSON.stringify(fields)}`, ...fields },
        });
      }
      await admin.store.usage.add([
        used(1, now, "large", { cachedInputTokens: 400_000 }),
        used(2, now - day, "large"),
        used(3, now - day, "free"),
        // The last minute of the day before, in Seoul, and the first of that day.
        used(1, Date.parse("2026-04-29T23:59:00+09:00"), "small"),
        used(1, Date.parse("2026-04-30T00:00:00+09:00"), "small"),
      ]);
      await setPrices(
        { ...price, pattern: "small" },
        { ...price, pattern: "large", input: 10, output: 20 },
        { ...price, pattern: "large", input: 100, output: 200, valid_from: "2026-05-01" },
      );
    });
    afterAll(() => admin.stop());

    // Of each row its group, how many requests, and what they cost; ? if some of them have no price.
    test.each<[string, string]>([
      ["by=day", "2026-05-01 1 200, 2026-04-30 3 22 ?, 2026-04-29 1 2"],
      ["by=day&from=2026-04-30&to=2026-04-30", "2026-04-30 3 22 ?"],
      ["by=day&to=2026-04-29&from=2026-04-29", "2026-04-29 1 2"],
      ["by=day&to=2028-02-29&from=2028-02-29", ""],
      ["by=day&key_id=1", "2026-05-01 1 200, 2026-04-30 1 2, 2026-04-29 1 2"],
      ["by=day&model=free", "2026-04-30 1 null ?"],
      ["by=model&tag=batch", "large 1 200, small 2 4"],
      ["by=tag&owner=", "team-a 1 null ?"],
      // Of a day, the hour of the last request alone; of the day before, what came after midnight.
      ["by=day&since=2026-05-01T12:00:00%2B09:00&until=2026-05-01T13:00:00%2B09:00", "2026-05-01 1 200"],
      ["by=key&since=2026-04-30T01:00:00%2B09:00&until=2026-05-01T00:00:00%2B09:00", "2 1 20, 3 1 null ?"],
      ["by=model&since=2026-04-29T23:30:00%2B09:00&until=2026-04-30T00:10:00%2B09:00", "small 2 4"],
      [
        "by=model&since=2026-04-29T23:30:00%2B09:00&until=2026-05-01T12:10:00%2B09:00",
        "free 1 null ?, large 2 220, small 2 4",
      ],
      ["by=key", "1 3 204, 2 1 20, 3 1 null ?"],
      ["by=key&owner=Kim", "1 3 204, 2 1 20"],
      ["by=model", "free 1 null ?, large 2 220, small 2 4"],
      ["by=tag", " 1 20, batch 3 204, team-a 4 204 ?"],
      ["by=owner", " 1 null ?, Kim 4 224"],
      ["by=key_model&key_id=1", "1 1 200, 1 2 4"],
    ])("%s", async (query, expected) => {
      const name = query.startsWith("by=day") ? "date" : query.startsWith("by=key") ? "key_id" : query.split(/[=&]/)[1];
      const rows = await readAll(query, 500);
      const texts = rows.map(
        (row) => `${String(row[name ?? ""])} ${row.request_count} ${row.cost}${row.cost_is_partial ? " ?" : ""}`,
      );
      expect(texts.join(", ")).toBe(expected);
      expect(await readAll(query, 1)).toEqual(rows);
      expect((await read(query)).currency).toBe("EUR");
    });

    test("a cursor leads no further than the days that are asked for", async () => {
      const beyond = Buffer.from(JSON.stringify([9_000_000_000, 0, ""])).toString("base64url");
      const { rows } = await read(`by=day&from=2026-04-29&to=2026-04-29&cursor=${beyond}`);
      expect(rows.map((row) => row["date"])).toEqual(["2026-04-29"]);
    });

    test("the first page has the sum of all rows, in which no tag counts twice", async () => {
      for (const by of ["tag", "key_model", "day"]) {
        const { total, next_cursor } = await read(`by=${by}&limit=1`);
        expect(total).toMatchObject({ request_count: 5, prompt_tokens: 5_000_000, cost: 224, cost_is_partial: true });
        expect((await read(`by=${by}&limit=1&cursor=${next_cursor}`)).total).toBeNull();
      }
    });

    test("a row has the tokens of its cost, and the last name of its key", async () => {
      const [row] = await readAll("by=key_model&key_id=1", 500);
      expect(row).toMatchObject({
        date: null,
        key_id: 1,
        model: "large",
        tag: null,
        owner: null,
        input_tokens: 1_000_000,
        cached_input_tokens: 400_000,
        output_tokens: 500_000,
      });
      expect(row?.["key_name"]).toStartWith("key ");
    });

    test.each([
      ["from=2026-13-01", "from must be a day, such as 2026-05-01"],
      ["from=2026-02-30", "from must be a day, such as 2026-05-01"],
      ["to=2025-02-29", "to must be a day, such as 2026-05-01"],
      ["from=2026-05-02&to=2026-05-01", "from must not be after to"],
      ["from=2025-04-30&to=2026-05-01", "from and to must be at most 366 days apart"],
      ["since=2026-05-01T01:00Z&until=2026-05-01T01:00Z", "since must be before until"],
      ["since=2025-04-30T01:00Z&until=2026-05-01T01:00Z", "from and to must be at most 366 days apart"],
      ["by=week", "by must be one of day, key, team, user, model, tag, owner, key_model"],
      ["limit=0", "limit must be an integer from 1 to 2000"],
      ["cursor=!", "cursor must be one that this endpoint returned"],
      ["cursor=bm90", "cursor must be one that this endpoint returned"],
    ])("the query %s gets 400", async (query, error) => {
      const response = await send(query);
      expect([response.status, response.json]).toEqual([400, { error }]);
    });
  });

  describe("of a year with 30 models", () => {
    const keyCount = 3;
    beforeAll(async () => {
      admin = await startAdmin({ engine });
      owner = await admin.login();
      const { now } = admin.time;
      const increments = Array.from({ length: 365 * 30 }, (_, n) =>
        used((n % keyCount) + 1, now - (n % 365) * day, `model ${n % 30}`, { inputTokens: 1000 + n, outputTokens: n }),
      );
      for (let added = 0; added < increments.length; added += 1000) {
        await admin.store.usage.add(increments.slice(added, added + 1000));
      }
      await setPrices(price, { ...price, input: 3, valid_from: "2026-01-01" });
    });
    afterAll(() => admin.stop());

    test("every grouping, in pages of any size, costs the same", async () => {
      const range = "from=2025-05-02&to=2026-05-01";
      let expected = 0;
      for (let n = 0; n < 365 * 30; n += 1) {
        const isDearer = n % 365 <= 120;
        expected += ((1000 + n) * (isDearer ? 3 : 1) + n * 2) / 1_000_000;
      }
      for (const [by, limit, count] of [
        ["day", 2000, 365],
        ["day", 100, 365],
        ["key", 2, keyCount],
        ["model", 7, 30],
        ["tag", 1, 1],
        ["key_model", 11, 30],
      ] as const) {
        const rows = await readAll(`by=${by}&${range}`, limit);
        expect([by, rows.length, rows.reduce((sum, row) => sum + row.request_count, 0)]).toEqual([by, count, 365 * 30]);
        expect(sumOf(rows)).toBeCloseTo(expected, 6);
      }
      const ofKeys = [];
      for (const id of [1, 2, 3]) ofKeys.push(...(await readAll(`by=day&${range}&key_id=${id}`, 2000)));
      expect(sumOf(ofKeys)).toBeCloseTo(expected, 6);
    });
  });
});
