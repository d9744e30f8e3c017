import { beforeAll, describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { type ProgramWithKey, startProgramWithKey } from "../support/program-with-key.ts";
import { startPostgres, whyNoPostgres } from "../support/postgres.ts";
import { childrenOf } from "../support/proc.ts";
import { rounds } from "../support/rounds.ts";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";

const processes = 2;
const clients = 6;
/** Before these kills, counted from 0, PostgreSQL is restarted. */
const restarts = new Set([1, Math.floor((rounds * 2) / 3)]);

async function readMetric({ adminUrl }: ProgramWithKey, name: string): Promise<number> {
  const headers = { authorization: "Bearer scrape", connection: "close" };
  const text = await (await fetch(`${adminUrl}/metrics`, { headers })).text();
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1]);
}

describe.skipIf(whyNoPostgres !== undefined)("several processes on one PostgreSQL", () => {
  const backend = shared(() => startSimulator());
  // With fsync, because it is restarted and must keep what it committed.
  const postgres = shared(() => startPostgres(["fsync=on"]));
  const program = shared(async () =>
    startProgramWithKey(backend.url, {
      PROCESSES: String(processes),
      DATABASE_URL: await postgres.createDatabase(),
      SECRET_KEY: "0123456789abcdef",
      METRICS_TOKEN: "scrape",
    }),
  );
  beforeAll(async () => {
    await pollUntil(async () => (await readMetric(program, "tollgate_processes")) === processes);
  });

  /** @returns whether a complete, successful response arrived */
  async function completes(): Promise<boolean> {
    try {
      // A new connection each time, so that the kernel may give it to either process.
      const sent = { script: "usage=3,4", headers: { connection: "close" } };
      const response = await program.send("/v1/chat/completions", { model: "m", messages: [] }, sent);
      await response.text();
      return response.ok;
    } catch {
      return false;
    }
  }

  test("count each response once while processes are killed and PostgreSQL restarts under load", async () => {
    const seen = { ended: 0, broken: 0 };
    const ending = new AbortController();
    const load = Array.from({ length: clients }, async () => {
      while (!ending.signal.aborted) seen[(await completes()) ? "ended" : "broken"]++;
    });
    for (let round = 0; round < rounds; round++) {
      const before = seen.ended;
      await pollUntil(() => seen.ended >= before + 40);
      if (restarts.has(round)) {
        await postgres.stop();
        await pollUntil(() => seen.ended >= before + 60);
        await postgres.start();
        // Counts of the outage wait in memory and would be lost with a killed process.
        await pollUntil(async () => (await readMetric(program, "tollgate_ledger_waiting_requests")) === 0);
      }
      const victim = childrenOf(program.pid)[round % processes] ?? 0;
      process.kill(victim, "SIGKILL");
      await pollUntil(() => !childrenOf(program.pid).includes(victim));
      await pollUntil(async () => (await readMetric(program, "tollgate_processes")) === processes);
    }
    ending.abort();
    await Promise.all(load);
    const [key] = await (await logIn(program.adminUrl, "admin", "password")).listKeys();
    expect(await program.stop()).toBe(0);
    const requests = key?.total_request_count ?? 0;
    expect(requests).toBeGreaterThanOrEqual(seen.ended);
    // Broken responses may have been counted, although the client did not see their end.
    expect(requests).toBeLessThanOrEqual(seen.ended + seen.broken);
    expect(key).toMatchObject({ total_input_tokens: requests * 3, total_output_tokens: requests * 4 });
  }, 300_000);
});
