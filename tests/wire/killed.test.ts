import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";

let backend: Simulator;
beforeAll(() => {
  backend = startSimulator();
});
afterAll(() => backend.stop());

const rounds = 20;
const clients = 8;

/** Sends requests until one fails. Counts only responses whose end it saw. */
async function sendUntilFailure(url: string, key: string, seen: { requests: number; tokens: number }): Promise<void> {
  for (let turn = 0; ; turn++) {
    const stream = turn % 2 === 0;
    try {
      const response = await fetch(`${url}/v1/messages`, {
        method: "POST",
        headers: { "x-api-key": key, "content-type": "application/json", "x-simulate": "usage=5,7" },
        body: JSON.stringify({ model: "m", stream, max_tokens: 7, messages: [{ role: "user", content: "Hi" }] }),
      });
      await response.text();
      if (!response.ok) return;
    } catch {
      return;
    }
    seen.requests++;
    seen.tokens += 7;
  }
}

test("a response whose end a client saw is counted, even if the program is killed twenty times under load", async () => {
  using folder = createTempFolder();
  const environment = {
    PROXY_UPSTREAM_URL: backend.url,
    DATA_DIR: folder.path,
    ADMIN_PASSWORD: "password",
    LOG_LEVEL: "error",
  };
  const seen = { requests: 0, tokens: 0 };
  let key = "";
  for (let round = 0; round < rounds; round++) {
    const program = await startProgram(environment);
    if (key === "") ({ key } = await (await logIn(program.adminUrl, "admin", "password")).createKey("test"));
    const before = seen.requests;
    const load = Array.from({ length: clients }, () => sendUntilFailure(program.url, key, seen));
    await pollUntil(() => seen.requests >= before + 20 + round * 3);
    await program.stop("SIGKILL");
    await Promise.all(load);
  }
  const program = await startProgram(environment);
  const [listed] = await (await logIn(program.adminUrl, "admin", "password")).listKeys();
  await program.stop();
  expect(seen.requests).toBeGreaterThan(rounds * 20);
  expect(listed?.total_request_count).toBeGreaterThanOrEqual(seen.requests);
  expect(listed?.total_output_tokens).toBeGreaterThanOrEqual(seen.tokens);
  // At most the requests in progress at each kill may have been counted, although the client did not see their end.
  expect(listed?.total_request_count).toBeLessThanOrEqual(seen.requests + rounds * clients);
}, 120_000);
