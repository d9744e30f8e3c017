import { describe, expect, test } from "bun:test";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { startGateProgram } from "../support/gate-program.ts";
import { sharedPostgres, whyNoPostgres } from "../support/postgres.ts";

describe.skipIf(whyNoPostgres !== undefined)("several processes on one PostgreSQL", () => {
  test("count exactly, whichever of them answers, and stop together", async () => {
    using backend = startSimulator();
    const program = await startGateProgram(backend.url, {
      PROCESSES: "2",
      DATABASE_URL: await (await sharedPostgres()).createDatabase(),
      SECRET_KEY: "0123456789abcdef",
    });
    const complete = async (): Promise<number> => {
      const response = await fetch(`${program.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "x-api-key": program.key, "content-type": "application/json", "x-simulate": "usage=3,4" },
        body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }] }),
      });
      await response.text();
      return response.status;
    };
    const statuses = await Promise.all(Array.from({ length: 60 }, complete));
    expect(new Set(statuses)).toEqual(new Set([200]));
    const [key] = await (await logIn(program.adminUrl, "admin", "password")).listKeys();
    expect(key).toMatchObject({ total_request_count: 60, total_input_tokens: 180, total_output_tokens: 240 });
    expect(await program.stop()).toBe(0);
  });
});
