import { startSimulator } from "../../src/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { startProgram } from "../support/program.ts";

// CPU time of a small completion at 32 connections: for a key without limits, and for one with limits of requests per
// minute, tokens per minute and tokens per day. `bun tests/bench/limits.ts [ROUNDS]`; TOLLGATE_BINARY measures another build.

const connections = 32;
const requestsPerRound = 6000;
const rounds = Number(process.argv[2] ?? 5);
const high = { requests_per_minute: 1e9, tokens_per_minute: 1e12, tokens_per_day: 1e12 };
const headers = { "content-type": "application/json" };
const body = JSON.stringify({ model: "m", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] });

async function complete(url: string, key: string): Promise<void> {
  let left = requestsPerRound;
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { ...headers, "x-api-key": key },
        body,
      });
      await response.arrayBuffer();
      if (response.status !== 200) throw new Error(`Status ${response.status}`);
    }
  };
  await Promise.all(Array.from({ length: connections }, client));
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

using backend = startSimulator({ recordRequests: 0 });
const program = await startProgram({
  PROXY_UPSTREAM_URL: backend.url,
  ADMIN_PASSWORD: "password",
  LOG_LEVEL: "warn",
});
const admin = await logIn(program.adminUrl, "admin", "password");
const create = (name: string, fields: object): Promise<{ key: string }> =>
  admin.expectOk("POST", "/api/keys", { name, ...fields });
const keys = { unlimited: await create("unlimited", {}), limited: await create("limited", high) };
const times: Record<string, number[]> = { unlimited: [], limited: [] };
for (let round = 0; round <= rounds; round++) {
  for (const [name, { key }] of Object.entries(keys)) {
    const before = program.cpuMs();
    await complete(program.url, key);
    await Bun.sleep(200);
    // The first round warms up.
    if (round > 0) times[name]?.push(((program.cpuMs() - before) * 1000) / requestsPerRound);
  }
}
await program.stop();
for (const [name, values] of Object.entries(times)) {
  const shown = values.map((value) => value.toFixed(1)).join(" ");
  process.stdout.write(`${name}: ${median(values).toFixed(1)} µs of CPU for a completion (${shown})\n`);
}
