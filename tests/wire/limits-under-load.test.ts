import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { clientOf } from "../support/client.ts";
import { sharedPostgres, whyNoPostgres } from "../support/postgres.ts";
import { type ProgramEnvironment, startProgram } from "../support/program.ts";
import { rounds } from "../support/rounds.ts";
import { pollUntil } from "../support/poll-until.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());

const keyCount = rounds * 10;
const perMinute = 5;
const attempts = 8;

async function post(url: string, key: string, script = ""): Promise<number> {
  const body = { model: "m", max_tokens: 7, messages: [{ role: "user", content: "Hi" }] };
  const sent = { script, headers: { connection: "close" } };
  const response = await clientOf(url, key).send("/v1/messages", body, sent);
  await response.arrayBuffer();
  return response.status;
}

async function startWithKeys(environment: ProgramEnvironment, fields: object, count: number) {
  const program = await startProgram({
    PROXY_UPSTREAM_URL: backend.url,
    ADMIN_PASSWORD: "password",
    SECRET_KEY: "0123456789abcdef",
    LOG_LEVEL: "warn",
    ...environment,
  });
  const admin = await logIn(program.adminUrl, "admin", "password");
  const keys: string[] = [];
  for (let n = 0; n < count; n++) {
    keys.push((await admin.createKey(`key ${n}`, { ...fields })).key);
  }
  return { program, admin, keys };
}

/** All keys at their limits, over connections that the kernel spreads over both processes. */
async function exactlyTheLimit(environment: ProgramEnvironment): Promise<void> {
  const { program, keys } = await startWithKeys(
    { PROCESSES: "2", ...environment },
    { requests_per_minute: perMinute, max_concurrency: 50, tokens_per_day: 1_000_000 },
    keyCount,
  );
  const granted = new Map(keys.map((key) => [key, 0]));
  const tries = Array.from({ length: attempts }, () => keys).flat();
  const worker = async (): Promise<void> => {
    for (let key = tries.pop(); key !== undefined; key = tries.pop()) {
      const status = await post(program.url, key);
      if (status === 200) granted.set(key, (granted.get(key) ?? 0) + 1);
      else expect(status).toBe(429);
    }
  };
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: 48 }, worker));
  // The window has not moved on.
  expect(performance.now() - startedAt).toBeLessThan(60_000);
  expect(new Set(granted.values())).toEqual(new Set([perMinute]));
  expect(program.stdout() + program.stderr()).not.toContain("without the limits");
  await program.stop();
}

describe("keys at their limits, over two processes, are granted exactly these", () => {
  test("on SQLite", () => exactlyTheLimit({}), 90_000);

  test.skipIf(whyNoPostgres !== undefined)(
    "on PostgreSQL",
    async () => exactlyTheLimit({ DATABASE_URL: await (await sharedPostgres()).createDatabase() }),
    90_000,
  );
});

describe("a day's tokens exceed their limit only by what running requests use above their reservations", () => {
  const limit = 100_000;
  const running = 16;
  const used = 3010;

  async function useUp(max_tokens: number | undefined): Promise<number> {
    const { program, admin, keys } = await startWithKeys({ PROCESSES: "2" }, { tokens_per_day: limit }, 1);
    const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }], max_tokens });
    const headers = { authorization: `Bearer ${keys[0]}`, "x-simulate": `usage=10,${used - 10}`, connection: "close" };
    const client = async (): Promise<void> => {
      let status = 200;
      while (status === 200) {
        const response = await fetch(`${program.url}/v1/chat/completions`, { method: "POST", headers, body });
        await response.arrayBuffer();
        status = response.status;
      }
      // By what is used, or by what runs.
      expect([402, 429]).toContain(status);
    };
    await Promise.all(Array.from({ length: running }, client));
    const [key] = await admin.expectOk<{ total_input_tokens: number; total_output_tokens: number }[]>(
      "GET",
      "/api/keys",
    );
    await program.stop();
    return (key?.total_input_tokens ?? 0) + (key?.total_output_tokens ?? 0);
  }

  test("without max_tokens", async () => {
    // 1024 tokens of output are reserved.
    expect(await useUp(undefined)).toBeWithin(limit - used, limit + running * (used - 1024) + 1);
  });

  test("with the max_tokens that it uses", async () => {
    expect(await useUp(used)).toBeWithin(limit - running * used, limit + 1);
  });
});

const used = 12;

async function useMany(): Promise<void> {
  using folder = createTempFolder();
  const settings = { DATA_DIR: folder.path };
  const fields = { requests_per_minute: 100_000, tokens_per_minute: 10_000_000, tokens_per_day: 10_000_000 };
  const { program, admin, keys } = await startWithKeys(settings, fields, 1);
  const [key = ""] = keys;
  let left = 400;
  const client = async (): Promise<void> => {
    while (left-- > 0) expect(await post(program.url, key, `usage=5,${used - 5}`)).toBe(200);
  };
  await Promise.all(Array.from({ length: 16 }, client));
  const expected = { requests_per_minute: 400, tokens_per_minute: 400 * used, tokens_per_day: 400 * used };
  const usedOf = async (session: typeof admin) =>
    (await session.expectOk<{ used: Record<string, number | null> }[]>("GET", "/api/keys"))[0]?.used;
  await pollUntil(async () => Bun.deepMatch(expected, (await usedOf(admin)) ?? {}), 5000);
  for (let sent = 0; sent < 40; sent++) expect(await post(program.url, key, `usage=5,${used - 5}`)).toBe(200);
  await program.stop("SIGKILL");
  const again = await startProgram({
    PROXY_UPSTREAM_URL: backend.url,
    SECRET_KEY: "0123456789abcdef",
    ADMIN_PASSWORD: "password",
    ...settings,
  });
  // What it had reserved may have been used, and counts for a minute beside that: not against the day.
  const restarted = await logIn(again.adminUrl, "admin", "password");
  await pollUntil(async () => Bun.deepMatch({ tokens_per_day: 440 * used }, (await usedOf(restarted)) ?? {}), 60_000);
  await again.stop();
}

// Both wait until a killed process is known to be dead, and do nothing else meanwhile.
describe.concurrent("after SIGKILL", () => {
  test("what a key that sends many requests used is exact", useMany, 120_000);

  test("the places of a process are free again within a minute of its next start", async () => {
    using folder = createTempFolder();
    using ownBackend = startSimulator();
    const { program, keys } = await startWithKeys(
      { PROXY_UPSTREAM_URL: ownBackend.url, DATA_DIR: folder.path, PROXY_QUEUE_TIMEOUT: "0" },
      { max_concurrency: 1 },
      1,
    );
    const [key = ""] = keys;
    const running = post(program.url, key, "slow-head=forever").catch(() => 0);
    await ownBackend.nextRequest();
    expect(await post(program.url, key)).toBe(429);
    const killedAt = performance.now();
    await program.stop("SIGKILL");
    await running;
    const next = await startProgram({
      PROXY_UPSTREAM_URL: ownBackend.url,
      ADMIN_PASSWORD: "password",
      SECRET_KEY: "0123456789abcdef",
      LOG_LEVEL: "warn",
      DATA_DIR: folder.path,
      PROXY_QUEUE_TIMEOUT: "0",
    });
    expect(await post(next.url, key)).toBe(429);
    await pollUntil(async () => (await post(next.url, key)) === 200, 60_000);
    expect(performance.now() - killedAt).toBeLessThan(60_000);
    await next.stop();
  });
});
