import { beforeAll, describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { clientOf } from "../support/client.ts";
import { startPostgres, whyNoPostgres } from "../support/postgres.ts";
import { type Program, type ProgramEnvironment, startProgram } from "../support/program.ts";
import { rounds } from "../support/rounds.ts";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";

const instanceCount = 3;
const clientsEach = 4;
const clientsAtOnce = instanceCount * clientsEach;
/** How often connections are cut before each kill: at any moment of a commit. */
const cutsEach = 7;
/** Before these kills, counted from 0, PostgreSQL is restarted. */
const restarts = new Set([1, Math.floor((rounds * 2) / 3)]);

interface Seen {
  requests: number;
  failed: number;
}

const body = { model: "m", stream: true, max_tokens: 7, messages: [{ role: "user", content: "Hi" }] };
const request = (url: string, key: string, script = "usage=5,7"): Promise<Response> =>
  clientOf(url, key).send("/v1/messages", body, { script });

async function waitingRequests({ adminUrl }: Program): Promise<number> {
  const response = await fetch(`${adminUrl}/metrics`, { headers: { authorization: "Bearer scrape" } });
  return Number(/^tollgate_ledger_waiting_requests(?:{[^}]*})? (\d+)$/m.exec(await response.text())?.[1]);
}

/** Sends requests to the instances in turn until the signal aborts. Counts only responses whose end it saw. */
async function sendUntilAborted(urls: readonly string[], key: string, seen: Seen, signal: AbortSignal): Promise<void> {
  for (let turn = 0; !signal.aborted; turn++) {
    try {
      const response = await request(urls[turn % urls.length] ?? "", key);
      await response.text();
      if (response.ok) seen.requests++;
      else seen.failed++;
    } catch {
      // The instance is down or was just killed. This plays a client that retries after a pause.
      await Bun.sleep(5);
    }
  }
}

describe.skipIf(whyNoPostgres !== undefined)("instances on one PostgreSQL", () => {
  const backend = shared(() => startSimulator());
  // With fsync, because it is restarted and must keep what it committed.
  const postgres = shared(() => startPostgres(["fsync=on"]));
  let environment: ProgramEnvironment;
  beforeAll(async () => {
    environment = {
      PROXY_UPSTREAM_URL: backend.url,
      DATABASE_URL: await postgres.createDatabase(),
      SECRET_KEY: "0123456789abcdef",
      ADMIN_PASSWORD: "password",
      METRICS_TOKEN: "scrape",
      LOG_LEVEL: "error",
    };
  });

  test("start together on an empty database, share sessions and keys, and apply each other's changes immediately", async () => {
    const [one, two] = await Promise.all([startProgram(environment), startProgram(environment)]);
    const admin = await logIn(one.adminUrl, "admin", "password");
    const { id, key } = await admin.createKey("shared");
    expect((await request(two.url, key)).status).toBe(200);
    const me = await fetch(`${two.adminUrl}/api/me`, { headers: { cookie: admin.cookie } });
    expect(me.status).toBe(200);
    for (let round = 0; round < 20; round++) {
      await admin.updateKey(id, { is_active: false });
      expect((await request(two.url, key)).status).toBe(401);
      await admin.updateKey(id, { is_active: true });
      expect((await request(two.url, key)).status).toBe(200);
    }
    await Promise.all([one.stop(), two.stop()]);
  });

  test("end what began before a key was switched off and on again, and nothing that began later", async () => {
    const [one, two] = await Promise.all([startProgram(environment), startProgram(environment)]);
    const admin = await logIn(one.adminUrl, "admin", "password");
    const { id, key } = await admin.createKey("off and on");
    const stream = async (simulate: string): Promise<Response> => {
      const response = await request(two.url, key, simulate);
      expect(response.status).toBe(200);
      return response;
    };
    // The instances poll at different times.
    for (let round = 0; round < rounds; round++) {
      const before = await stream("gap=forever@2");
      await Bun.sleep(500);
      await admin.updateKey(id, { is_active: false, end_running: true });
      await admin.updateKey(id, { is_active: true });
      const after = await stream("gap=900ms@2");
      expect(await after.text()).toContain("message_stop");
      expect(await before.text().catch(() => "broken")).not.toContain("message_stop");
    }
    await Promise.all([one, two].map((program) => program.stop()));
  });

  test("count each response once while instances are killed, PostgreSQL restarts and connections are cut", async () => {
    const instances: Program[] = await Promise.all(
      Array.from({ length: instanceCount }, () => startProgram(environment)),
    );
    const urls = instances.map(({ url }) => url);
    const first = instances[0];
    if (first === undefined) throw new Error("No instance");
    const { key, id } = await (await logIn(first.adminUrl, "admin", "password")).createKey("counted");
    const seen: Seen = { requests: 0, failed: 0 };
    const ending = new AbortController();
    const load = Array.from({ length: clientsAtOnce }, () => sendUntilAborted(urls, key, seen, ending.signal));

    for (let round = 0; round < rounds; round++) {
      const before = seen.requests;
      for (let cut = 1; cut <= cutsEach; cut++) {
        await pollUntil(() => seen.requests >= before + cut * 10);
        await postgres.cutConnections();
      }
      if (restarts.has(round)) {
        await postgres.stop();
        await pollUntil(() => seen.requests >= before + 90);
        await postgres.start();
        // Counts of the outage wait in memory and would be lost with a killed instance.
        await Promise.all(
          instances.map((instance) => pollUntil(async () => (await waitingRequests(instance)) < clientsAtOnce)),
        );
      }
      const n = round % instanceCount;
      const killed = instances[n];
      await killed?.stop("SIGKILL");
      // On the same port, so that clients find it.
      instances[n] = await startProgram({ ...environment, PORT: new URL(killed?.url ?? "").port });
    }
    ending.abort();
    await Promise.all(load);
    const statuses = await Promise.all(instances.map((instance) => instance.stop()));
    expect(statuses).toEqual([0, 0, 0]);

    const [counted] = await postgres.run(
      `select request_count as requests, input_tokens as input, output_tokens as output from keys where id = ${id}`,
      environment["DATABASE_URL"],
    );
    const requests = Number(counted?.["requests"]);
    expect(seen.requests).toBeGreaterThan(rounds * cutsEach * 10);
    expect(requests).toBeGreaterThanOrEqual(seen.requests);
    // Requests in progress at a kill may have been counted, although the client did not see their end.
    expect(requests).toBeLessThanOrEqual(seen.requests + rounds * clientsAtOnce);
    expect(Number(counted?.["input"])).toBe(requests * 5);
    expect(Number(counted?.["output"])).toBe(requests * 7);
    for (const table of ["usage_minute", "usage_hour", "usage_day"]) {
      const [sum] = await postgres.run(
        `select sum(request_count) as requests, sum(input_tokens) as input from ${table} where key_id = ${id}`,
        environment["DATABASE_URL"],
      );
      expect([table, Number(sum?.["requests"]), Number(sum?.["input"])]).toEqual([table, requests, requests * 5]);
    }
  }, 300_000);
});
