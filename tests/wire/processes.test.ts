import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { clientOf } from "../support/client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { childrenOf, isRunning } from "../support/proc.ts";
import { valueOf } from "../telemetry/open-metrics.ts";
import { freshly, logged, metricsToken, processCount, scrape, startProcesses, stream } from "../support/processes.ts";
import { connectRaw } from "../support/raw-client.ts";
import { rounds } from "../support/rounds.ts";
import type { Program } from "../support/program.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());

const body = { model: "m", max_tokens: 7, messages: [{ role: "user", content: "Hi" }] };
const complete = (url: string, key: string): Promise<Response> =>
  clientOf(url, key).send("/v1/messages", body, { ...freshly, script: "usage=5,7" });

/** Sends requests until the signal aborts. Counts only responses whose end it saw. */
async function sendUntilAborted(
  program: Program,
  key: string,
  seen: { requests: number },
  ended: AbortSignal,
): Promise<void> {
  while (!ended.aborted) {
    try {
      const response = await complete(program.url, key);
      await response.text();
      if (response.ok) seen.requests++;
    } catch {
      // The request's process was killed.
    }
  }
}

test("counts stay exact and metrics never decrease while each process is killed in turn under load", async () => {
  const program = await startProcesses(backend.url, { LOG_LEVEL: "error" });
  const { key, admin } = program;
  const [seen, ended, clients] = [{ requests: 0 }, new AbortController(), 6];
  const load = Array.from({ length: clients }, () => sendUntilAborted(program, key, seen, ended.signal));
  const scraped: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const before = seen.requests;
    await pollUntil(() => seen.requests >= before + 40);
    scraped.push(await pollUntil(async () => (await scrape(program)).requests));
    const victim = childrenOf(program.pid)[round % processCount] ?? 0;
    process.kill(victim, "SIGKILL");
    await pollUntil(() => !isRunning(victim));
    // Retried, because a connection may still land on the victim's socket and be reset.
    scraped.push(await pollUntil(async () => (await scrape(program)).requests));
    await pollUntil(async () => (await scrape(program)).tollgate_processes === processCount);
  }
  ended.abort();
  await Promise.all(load);
  const [listed] = await admin.listKeys();
  const stillCounted = await scrape(program);
  expect(await program.stop()).toBe(0);
  expect(listed?.total_request_count).toBeGreaterThanOrEqual(seen.requests);
  // At most the requests in progress at each kill were counted, although the client did not see their end.
  expect(listed?.total_request_count).toBeLessThanOrEqual(seen.requests + rounds * clients);
  expect(listed?.total_output_tokens).toBe((listed?.total_request_count ?? 0) * 7);
  expect(scraped).toEqual(scraped.toSorted((a, b) => a - b));
  expect(stillCounted["requests"]).toBeGreaterThanOrEqual(scraped.at(-1) ?? 0);
}, 300_000);

describe("several processes", () => {
  const program = shared(() => startProcesses(backend.url));

  test("log their address once, and each line with its pid", () => {
    const lines = logged(program);
    expect(lines.filter(({ message }) => message === "Listening")).toMatchObject([
      { proxy: `${program.url}/v1`, processes: processCount },
    ]);
    expect(lines.filter(({ pid }) => typeof pid !== "number")).toEqual([]);
  });

  test("all refuse a key immediately after it is disabled under load", async () => {
    const { admin } = program;
    const { id, key } = await admin.createKey("revoked under load");
    const ends = new AbortController();
    const load = Array.from({ length: 12 }, async () => {
      while (!ends.signal.aborted) await (await complete(program.url, key)).text();
    });
    for (let time = 0; time < 20; time++) {
      for (const active of [false, true]) {
        await admin.updateKey(id, { is_active: active });
        const responses = await Promise.all(Array.from({ length: 6 }, () => complete(program.url, key)));
        expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([active ? 200 : 401]));
      }
    }
    ends.abort();
    await Promise.all(load);
  });

  test("each report the requests of all", async () => {
    const { key } = await program.admin.createKey("summed");
    const { requests: before = 0 } = await scrape(program);
    await Promise.all(Array.from({ length: 30 }, async () => (await complete(program.url, key)).text()));
    // A process counts the requests of a tick at its end, when their responses may already be here.
    await pollUntil(async () => (await scrape(program)).requests === before + 30);
    for (let turn = 0; turn < 10; turn++) expect((await scrape(program)).requests).toBe(before + 30);
  });

  test("each report the requests in flight of all", async () => {
    const { admin } = program;
    const { key } = await admin.createKey("in flight");
    const clients = await Promise.all(Array.from({ length: 9 }, () => stream(program, "gap=forever@2", key)));
    for (let turn = 0; turn < 10; turn++) {
      const { headers } = freshly;
      const overview = await fetch(`${program.adminUrl}/api/overview`, {
        headers: { ...headers, cookie: admin.cookie },
      });
      expect(await overview.json()).toMatchObject({ in_flight: 9 });
      expect(await scrape(program)).toMatchObject({ tollgate_requests_in_flight: 9, tollgate_processes: processCount });
    }
    for (const client of clients) client.close();
  });

  test("log sixty refused requests a minute of a source together", async () => {
    const { admin } = program;
    const refusals = Array.from({ length: 60 * processCount + 60 }, () => complete(program.url, "wrong"));
    for (const response of await Promise.all(refusals)) expect(response.status).toBe(401);
    const headers = { authorization: `Bearer ${metricsToken}` };
    const rows = await pollUntil(async () => {
      const requests = await admin.listRequests("?status=401&limit=200");
      const metrics = await (await fetch(`${program.adminUrl}/metrics`, { headers })).text();
      const omitted = valueOf(metrics, 'tollgate_request_log_omitted_total{reason="refused"}') ?? 0;
      return requests.length + omitted >= refusals.length && requests;
    });
    // The sixty of the next minute too, if that begins meanwhile.
    expect([60, 120]).toContain(rows.length);
  });

  test("let a key's requests have its place in turn, though some always wait at each", async () => {
    const { admin } = program;
    const { key } = await admin.createKey("one at a time", { max_concurrency: 1 });
    const headers = { "x-api-key": key, "Content-Type": "application/json", "x-simulate": "slow-head=50ms" };
    const served = new Set<number>();
    const clients = Array.from({ length: 12 }, async (_, number) => {
      // Over one connection, and so at one process.
      const client = await connectRaw(program.url, { deadlineMs: 60_000 });
      while (served.size < clients.length) {
        client.request("POST", "/v1/messages", headers, JSON.stringify(body));
        expect((await client.head()).status).toBe(200);
        await client.ended();
        client.nextResponse();
        served.add(number);
      }
      client.close();
    });
    await Promise.all(clients);
  });

  test("replace one that receives a signal, after its streams have finished", async () => {
    const { key } = await program.admin.createKey("drained");
    const clients = await Promise.all(Array.from({ length: 9 }, () => stream(program, "gap=1500ms@3", key)));
    const before = childrenOf(program.pid);
    const [leaving = 0] = before;
    process.kill(leaving, "SIGTERM");
    for (const client of clients) {
      expect(await client.ended()).toBe("complete");
      expect(await client.text()).toEndWith("data: [DONE]\n\n");
    }
    await pollUntil(() => !childrenOf(program.pid).includes(leaving));
    await pollUntil(async () => (await scrape(program)).tollgate_processes === processCount);
    const after = childrenOf(program.pid);
    expect(after).toHaveLength(processCount);
    expect(before.filter((pid) => after.includes(pid))).toEqual(before.slice(1));
  });

  // The last test, because it locks the tests' address out.
  test("share sessions and the login limit", async () => {
    const attempt = async (): Promise<number> => {
      const response = await fetch(`${program.adminUrl}/api/login`, {
        method: "POST",
        headers: { ...freshly.headers, "content-type": "application/json" },
        body: JSON.stringify({ username: "admin", password: "wrong" }),
      });
      return response.status;
    };
    const { cookie } = await logIn(program.adminUrl, "admin", "password");
    for (let turn = 0; turn < 10; turn++) {
      const me = await fetch(`${program.adminUrl}/api/me`, { headers: { ...freshly.headers, cookie } });
      expect(me.status).toBe(200);
    }
    const statuses: number[] = [];
    for (let turn = 0; turn < 12; turn++) statuses.push(await attempt());
    const refusedFrom = statuses.indexOf(429);
    expect(refusedFrom).toBeGreaterThanOrEqual(0);
    expect(refusedFrom).toBeLessThanOrEqual(9);
    expect(new Set(statuses.slice(refusedFrom))).toEqual(new Set([429]));
  });
});
