import { expect, test } from "bun:test";
import { minuteOf } from "../../src/time/seoul.ts";
import { startAdmin } from "./support/admin-server.ts";

test("the backend's counters are shown beside the counts, and a day that drifts is marked", async () => {
  const admin = await startAdmin();
  const owner = await admin.login();
  const { now } = admin.time;
  const { id } = await admin.createKey("first");
  const { reconciliation, usage } = admin.store;
  const sample = (at: number, generatedTokens: number) =>
    reconciliation.add({ source: "sglang", at, generatedTokens, promptTokens: generatedTokens });
  await usage.add([
    {
      keyId: id,
      minute: minuteOf(now - 60_000),
      lastClosedAt: now,
      requestCount: 1,
      inputTokens: 5,
      outputTokens: 70_000,
    },
  ]);
  await sample(now - 60_000, 0);
  await sample(now, 100_000);
  const get = (path: string) => admin.send("GET", path, { as: owner });
  expect((await get("/api/reconciliation")).json).toEqual({
    days: 30,
    source: "sglang",
    checked_at: "2026-05-01T12:00:00.000+09:00",
    rows: [
      {
        date: "2026-05-01",
        generated_tokens: 100_000,
        counted_output_tokens: 70_000,
        difference: 30_000,
        prompt_tokens: 100_000,
        counted_input_tokens: 5,
        is_drifting: true,
      },
    ],
  });
  const wrong = await get("/api/reconciliation?days=91");
  expect([wrong.status, wrong.json]).toEqual([400, { error: "days must be an integer from 1 to 90" }]);
  await admin.stop();
});
