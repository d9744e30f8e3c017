import { expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import type { AdminClient } from "../support/admin-client.ts";
import { runWorkload, WrongCount } from "./run-workload.ts";
import type { Workload } from "./workloads.ts";

const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }], max_tokens: 4 });
const workload: Workload = {
  name: "few",
  title: "few",
  quick: true,
  load: { body, connections: 2, requests: 20 },
  figures: [],
};

/** Runs the workload against the backend, with a fake admin client that reports the counts. */
async function measured(requestsCounted: number, status = 200) {
  using backend = startSimulator({ defaultOutputTokens: 4 });
  let asked = 0;
  const admin = {
    async listKeys() {
      const { reported } = backend.stats();
      const missed = asked++ === 0 ? 0 : 20 - requestsCounted;
      return [
        {
          total_request_count: reported.requests - missed,
          total_input_tokens: reported.inputTokens,
          total_output_tokens: reported.outputTokens,
        },
      ];
    },
  } as unknown as AdminClient;
  const target = {
    name: "it",
    port: Number(new URL(backend.url).port),
    headers: [],
    process: { pid: process.pid, exited: Promise.resolve(0), stop: async () => {} },
    admin,
  };
  return await runWorkload({ ...workload, status }, target, ["key"]);
}

test("a run whose counters equal what the client read is accepted", async () => {
  const run = await measured(20);
  expect(run.result.usage.requests).toBe(20);
  expect(run.residentMb).toBeGreaterThan(1);
});

test("a run with a count that is off by one or with unexpected statuses is rejected", async () => {
  await expect(measured(19)).rejects.toBeInstanceOf(WrongCount);
  await expect(measured(20, 401)).rejects.toThrow("expected 20 responses with 401");
});
