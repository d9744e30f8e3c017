import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { usageAt } from "../../store/test-store.ts";
import { recordedMetrics, sumUsage } from "../../fixtures/recorded-metrics.ts";
import { startTollgate } from "../../support/tollgate.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { startAdmin } from "../support/admin-server.ts";
import type { Usage } from "../../../src/domain/usage.ts";
import type { ReconciliationBody } from "../../../src/admin/usage/cost-contract.ts";

onEachEngine(({ engine }) => {
  test("the backend's counters are shown beside the counts, and a day that drifts is marked", async () => {
    const admin = await startAdmin({ engine });
    const owner = await admin.login();
    const { now } = admin.time;
    const { id } = await admin.createKey("first");
    const { reconciliation, usage } = admin.store;
    const sample = (at: number, generatedTokens: number) =>
      reconciliation.add({ source: "sglang", at, generatedTokens, promptTokens: generatedTokens });
    await usage.add([usageAt(id, now - 60_000, { inputTokens: 5, outputTokens: 970_000 })]);
    await sample(now - 60_000, 0);
    await sample(now, 1_000_000);
    const get = (path: string) => admin.send("GET", path, { as: owner });
    expect((await get("/api/reconciliation")).json).toEqual({
      days: 30,
      source: "sglang",
      checked_at: "2026-05-01T12:00:00.000+09:00",
      rows: [
        {
          date: "2026-05-01",
          generated_tokens: 1_000_000,
          counted_output_tokens: 970_000,
          difference: 30_000,
          prompt_tokens: 1_000_000,
          counted_input_tokens: 5,
          prompt_difference: 999_995,
          is_drifting: true,
        },
      ],
      by_backend: [],
    });
    const wrong = await get("/api/reconciliation?days=91");
    expect([wrong.status, wrong.json]).toEqual([400, { error: "days must be an integer from 1 to 90" }]);
    await admin.stop();
  });

  describe("with recorded metrics", () => {
    beforeEach(() => {
      jest.useFakeTimers();
    });
    afterEach(() => {
      jest.useRealTimers();
    });

    test.each(recordedMetrics)("what $server told no client is the day's difference", async (recorded) => {
      const { source, started, first, firstUsage, second, reported, unreported } = recorded;
      await using backend = startBackend([firstUsage, ...reported]);
      const time = { now: Date.parse("2026-05-01T12:00:00+09:00") };
      await using gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url }, { clock: () => time.now, engine });
      const post = async (): Promise<string> => {
        const response = await fetch(`${gate.url}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${gate.key}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "tiny", messages: [] }),
        });
        return await response.text();
      };
      /** Resolves when these metrics of the backend are stored. It cannot sleep, because timers are not real. */
      const readMetrics = async (text: string): Promise<ReconciliationBody> => {
        Object.assign(backend.metrics, { text, areRead: false });
        for (;;) {
          if (!backend.metrics.areRead) jest.advanceTimersByTime(60_000);
          const body = await gate.admin.expectOk<ReconciliationBody>("GET", "/api/reconciliation");
          if (body.checked_at !== null && Date.parse(body.checked_at) === time.now) return body;
        }
      };

      expect(await readMetrics(started)).toMatchObject({ source, rows: [] });
      await post();
      time.now += 60_000;
      await readMetrics(first);
      for (const _ of reported) await post();
      time.now += 60_000;
      const { rows } = await readMetrics(second);
      const counted = sumUsage([firstUsage, ...reported]);
      const generated = sumUsage([counted, unreported]);
      expect(rows).toEqual([
        {
          date: "2026-05-01",
          generated_tokens: generated.outputTokens,
          counted_output_tokens: counted.outputTokens,
          difference: unreported.outputTokens,
          prompt_tokens: generated.inputTokens,
          counted_input_tokens: counted.inputTokens,
          prompt_difference: unreported.inputTokens,
          is_drifting: false,
        },
      ]);
    });
  });
});

/** A backend with scripted metrics, which responds to each request with the next usage. */
function startBackend(usages: Usage[]) {
  const metrics = { text: "", areRead: false };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ url }) {
      if (new URL(url).pathname === "/metrics") {
        metrics.areRead = true;
        return new Response(metrics.text);
      }
      const { inputTokens = 0, outputTokens = 0 } = usages.shift() ?? {};
      const usage = { prompt_tokens: inputTokens, completion_tokens: outputTokens };
      return Response.json({ object: "chat.completion", choices: [], usage });
    },
  });
  return { metrics, url: server.url.origin, [Symbol.asyncDispose]: () => server.stop(true) };
}
