import { expect, test } from "bun:test";
import { startSimulator } from "../../src/simulator/simulator.ts";
import type { AdminClient } from "../support/admin-client.ts";
import { measureOnce, WrongCount } from "./measure.ts";
import type { Measure } from "./measures.ts";

const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }], max_tokens: 4 });
const measure: Measure = {
  name: "few",
  title: "few",
  quick: true,
  load: { body, connections: 2, requests: 20 },
  figures: [],
};

/** The backend itself, with somebody beside it who says what was counted. */
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
  const contestant = {
    name: "it",
    port: Number(new URL(backend.url).port),
    headers: [],
    process: { pid: process.pid, exited: Promise.resolve(0), stop: async () => {} },
    admin,
  };
  return await measureOnce({ ...measure, status }, contestant, ["key"]);
}

test("a run whose counters agree with what the client read is taken", async () => {
  const run = await measured(20);
  expect(run.result.usage.requests).toBe(20);
  expect(run.residentMb).toBeGreaterThan(1);
});

test("a run is thrown away whose counters are off by one, or whose answers are others than were meant", async () => {
  await expect(measured(19)).rejects.toBeInstanceOf(WrongCount);
  await expect(measured(20, 401)).rejects.toThrow("20 answers with 401 were due");
});
