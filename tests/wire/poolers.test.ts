import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { startPgbouncer, whyNoPgbouncer } from "../support/pgbouncer.ts";
import { sharedPostgres, whyNoPostgres } from "../support/postgres.ts";
import { manual } from "../support/manual.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";

const ignored = "ignore_startup_parameters = statement_timeout,idle_in_transaction_session_timeout";

test("the handbook shows the PgBouncer setting that is tested here", () => {
  expect(manual).toContain(`\`${ignored}\``);
});

describe.skipIf(whyNoPgbouncer !== undefined || whyNoPostgres !== undefined)("with PgBouncer", () => {
  const backend = shared(() => startSimulator());

  const post = async ({ send }: Tollgate, key: string): Promise<number> => {
    const body = { model: "m", messages: [{ role: "user", content: "Hi" }] };
    const response = await send("/v1/chat/completions", body, { key, script: "usage=3,4" });
    await response.text();
    return response.status;
  };

  test.each([
    ["session", ""],
    ["transaction", "?prepare=false"],
  ])(
    "in %s mode two instances apply each other's changes and limits, serve the admin API and count exactly while connections are cut",
    async (mode, query) => {
      const postgres = await sharedPostgres();
      const database = await postgres.createDatabase();
      // In transaction mode fewer connections than the instances open, so that each runs statements of both.
      const size = mode === "session" ? 40 : 3;
      await using pooler = await startPgbouncer(database, [
        `pool_mode = ${mode}`,
        `default_pool_size = ${size}`,
        ignored,
      ]);
      const environment = { PROXY_UPSTREAM_URL: backend.url, DATABASE_URL: pooler.url + query };
      await using one = await startTollgate(environment);
      await using two = await startTollgate(environment);
      expect(await post(one, two.key)).toBe(200);
      await two.admin.updateKey(two.keyId, { is_active: false });
      expect(await post(one, two.key)).toBe(401);
      const pages = [
        "/api/overview",
        "/api/keys",
        "/api/usage/daily?days=7",
        "/api/usage/history?days=1&bucket_minutes=5",
      ];
      const shown = await Promise.all(pages.map(async (path) => (await one.admin.request("GET", path)).status));
      expect(shown).toEqual(pages.map(() => 200));
      const limits = { requests_per_minute: 5, tokens_per_day: 1_000_000 };
      const { key: limited } = await one.admin.createKey("b", { ...limits });
      const statuses = await Promise.all(Array.from({ length: 12 }, (_, n) => post(n % 2 === 0 ? one : two, limited)));
      expect(statuses.filter((status) => status === 200)).toHaveLength(5);
      for (let round = 0; round < 6; round++) {
        const responses = Array.from({ length: 20 }, (_, n) => post(n % 2 === 0 ? one : two, one.key));
        // After the first round both instances have verified the key and can bridge a failed query.
        if (round > 0) await postgres.cutConnections();
        expect(new Set(await Promise.all(responses))).toEqual(new Set([200]));
      }
      await pollUntil(async () => (await one.readKey()).total_request_count >= 120);
      expect(await one.readKey()).toMatchObject({ total_request_count: 120, total_output_tokens: 480 });
    },
  );
});
