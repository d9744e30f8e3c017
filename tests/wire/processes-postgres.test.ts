import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { type ProgramWithKey, startProgramWithKey } from "../support/program-with-key.ts";
import { type Postgres, startPostgres, whyNoPostgres } from "../support/postgres.ts";
import { pollUntil } from "../support/poll-until.ts";

const processes = 2;
const clients = 6;
const rounds = 6;
/** Before these kills, counted from 0, PostgreSQL is started again. */
const restarts = new Set([1, 4]);

async function figure({ adminUrl }: ProgramWithKey, name: string): Promise<number> {
  const headers = { authorization: "Bearer scrape", connection: "close" };
  const text = await (await fetch(`${adminUrl}/metrics`, { headers })).text();
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1]);
}

/** proc_pid_task_children(5). */
const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);

describe.skipIf(whyNoPostgres !== undefined)("several processes on one PostgreSQL", () => {
  let backend: Simulator;
  let postgres: Postgres;
  let program: ProgramWithKey;
  beforeAll(async () => {
    backend = startSimulator();
    // Restarted: this one has to keep what it said it keeps.
    postgres = await startPostgres(["fsync=on"]);
    program = await startProgramWithKey(backend.url, {
      PROCESSES: String(processes),
      DATABASE_URL: await postgres.createDatabase(),
      SECRET_KEY: "0123456789abcdef",
      METRICS_TOKEN: "scrape",
    });
    await pollUntil(async () => (await figure(program, "tollgate_processes")) === processes);
  });
  afterAll(async () => {
    backend.stop();
    await postgres[Symbol.asyncDispose]();
  });

  /** @returns whether the end of a good answer was seen */
  async function complete(): Promise<boolean> {
    try {
      const response = await fetch(`${program.url}/v1/chat/completions`, {
        method: "POST",
        headers: {
          "x-api-key": program.key,
          "content-type": "application/json",
          "x-simulate": "usage=3,4",
          // A new connection each time, so that the kernel may give it to either.
          connection: "close",
        },
        body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }] }),
      });
      await response.text();
      return response.ok;
    } catch {
      return false;
    }
  }

  test("count every answer once, whichever is killed and though PostgreSQL restarts under load", async () => {
    const seen = { ended: 0, broken: 0 };
    const ending = new AbortController();
    const talking = Array.from({ length: clients }, async () => {
      while (!ending.signal.aborted) seen[(await complete()) ? "ended" : "broken"]++;
    });
    for (let round = 0; round < rounds; round++) {
      const before = seen.ended;
      await pollUntil(() => seen.ended >= before + 40);
      if (restarts.has(round)) {
        await postgres.stop();
        await pollUntil(() => seen.ended >= before + 60);
        await postgres.start();
        // What came while it was away waits in memory: a process that is killed then takes it along.
        await pollUntil(async () => (await figure(program, "tollgate_ledger_waiting_requests")) === 0);
      }
      const victim = childrenOf(program.pid)[round % processes] ?? 0;
      process.kill(victim, "SIGKILL");
      await pollUntil(() => !childrenOf(program.pid).includes(victim));
      await pollUntil(async () => (await figure(program, "tollgate_processes")) === processes);
    }
    ending.abort();
    await Promise.all(talking);
    const [key] = await (await logIn(program.adminUrl, "admin", "password")).listKeys();
    expect(await program.stop()).toBe(0);
    const requests = key?.total_request_count ?? 0;
    expect(requests).toBeGreaterThanOrEqual(seen.ended);
    // Those that were broken may have been counted without their end being seen.
    expect(requests).toBeLessThanOrEqual(seen.ended + seen.broken);
    expect(key).toMatchObject({ total_input_tokens: requests * 3, total_output_tokens: requests * 4 });
  }, 120_000);
});
