import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { startProgramWithKey } from "../support/program-with-key.ts";
import { shared } from "../support/shared.ts";
import type { RawClient } from "../support/raw-client.ts";
import { pollUntil } from "../support/poll-until.ts";

const backend = shared(() => startSimulator());
const program = shared(() => startProgramWithKey(backend.url));

describe("one process", () => {
  test("serves 3,000 concurrent streams, each of which gets its frames", async () => {
    backend.clear();
    const clients: RawClient[] = [];
    for (let opened = 0; opened < 3000; opened += 100) {
      clients.push(...(await Promise.all(Array.from({ length: 100 }, () => program.postStream("gap=forever@2")))));
    }
    for (const client of clients) expect(await client.nextEvent()).toStartWith("data: {");
    expect(backend.stats().open).toBe(3000);
    for (const client of clients) client.reset();
    await pollUntil(() => backend.stats().open === 0);
  });
});
