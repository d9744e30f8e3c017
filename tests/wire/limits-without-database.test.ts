import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import { type AdminClient, logIn } from "../support/admin-client.ts";
import { clientOf } from "../support/client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type Postgres, startPostgres, whyNoPostgres } from "../support/postgres.ts";
import { type Program, startProgram } from "../support/program.ts";

const limit = 30;

interface Sent {
  statuses: number[];
  slowestMs: number;
}

/** Sends requests at once. Fails none: a refusal is a status. */
async function send(program: Program, key: string, count: number): Promise<Sent> {
  let slowestMs = 0;
  const statuses = await Promise.all(
    Array.from({ length: count }, async () => {
      const begunAt = performance.now();
      const body = { model: "m", max_tokens: 5, messages: [] };
      const response = await clientOf(program.url, key).send("/v1/chat/completions", body, { script: "usage=1,1" });
      await response.text();
      slowestMs = Math.max(slowestMs, performance.now() - begunAt);
      return response.status;
    }),
  );
  return { statuses, slowestMs };
}

const admitted = (...sent: readonly Sent[]): number =>
  sent.flatMap(({ statuses }) => statuses).filter((status) => status === 200).length;

const areExact = async ({ adminUrl }: Program): Promise<boolean> => {
  const { states } = (await (await fetch(`${adminUrl}/readyz`)).json()) as { states: { kind: string }[] };
  return states.every(({ kind }) => kind !== "limits_by_share");
};

async function readMetric({ adminUrl }: Program, name: string): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`, { headers: { authorization: "Bearer scrape" } })).text();
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1]);
}

describe.skipIf(whyNoPostgres !== undefined)("limits of keys, with two instances on one PostgreSQL", () => {
  let backend: Simulator;
  let postgres: Postgres;
  let databaseUrl: string;
  let environment: Record<string, string>;
  let programs: Program[] = [];
  let admin: AdminClient;
  beforeAll(async () => {
    backend = startSimulator();
    postgres = await startPostgres();
    databaseUrl = await postgres.createDatabase();
    environment = {
      PROXY_UPSTREAM_URL: backend.url,
      DATABASE_URL: databaseUrl,
      SECRET_KEY: "0123456789abcdef",
      ADMIN_PASSWORD: "password",
      METRICS_TOKEN: "scrape",
      LOG_LEVEL: "error",
    };
    const first = await startProgram(environment);
    programs = [first, await startProgram(environment)];
    admin = await logIn(first.adminUrl, "admin", "password");
  });
  afterAll(async () => {
    await Promise.all(programs.map((program) => program.stop()));
    backend.stop();
    await postgres[Symbol.asyncDispose]();
  });

  const beats = async (): Promise<number> =>
    Number((await postgres.run("select coalesce(sum(beat), 0) as beats from instances", databaseUrl))[0]?.["beats"]);

  /** A key that both instances know, and that has used two of its requests. Each instance knows of the other one. */
  async function createKey(): Promise<{ id: number; key: string }> {
    const beatsBefore = await beats();
    const created = await admin.createKey("limited", { requests_per_minute: limit });
    for (const program of programs) expect(admitted(await send(program, created.key, 1))).toBe(1);
    await pollUntil(async () => (await beats()) >= beatsBefore + 2 * programs.length, 20_000);
    return created;
  }

  const areAllWell = () => pollUntil(async () => !(await Promise.all(programs.map(areExact))).includes(false), 20_000);

  test("each enforces its share while PostgreSQL does not respond, in time, and says so", async () => {
    const { id, key } = await createKey();
    await postgres.freeze();
    const sent = await Promise.all(programs.map((program) => send(program, key, 40)));
    expect(await readMetric(programs[0] as Program, "tollgate_limits_degraded")).toBe(1);
    const later = await Promise.all(programs.map((program) => send(program, key, 40)));
    await postgres.thaw();
    // Each of the two knows of one or both of the requests before, and takes half of what was left.
    expect(admitted(...sent, ...later)).toBeWithin(limit - 2, limit + 1);
    expect(new Set(sent.flatMap(({ statuses }) => statuses))).toEqual(new Set([200, 429]));
    // A second and a half for the limits, and one for the count; a loaded machine is slower.
    for (const { slowestMs } of sent) expect(slowestMs).toBeLessThan(5000);
    await areAllWell();
    const used = async () =>
      (await admin.expectOk<{ id: number; used: Record<string, number> }[]>("GET", "/api/keys")).find(
        (one) => one.id === id,
      )?.used["requests_per_minute"];
    await pollUntil(async () => ((await used()) ?? 0) >= admitted(...sent, ...later) + 2, 10_000);
    expect(admitted(await send(programs[0] as Program, key, 5))).toBe(0);
  });

  test("hold while another instance has stopped, whatever it was doing, and hold again once it goes on", async () => {
    const { key } = await createKey();
    const [stopped, going] = programs as [Program, Program];
    const inStopped = send(stopped, key, 10);
    process.kill(stopped.pid, "SIGSTOP");
    const inOther = [await send(going, key, 40), await send(going, key, 40)];
    process.kill(stopped.pid, "SIGCONT");
    const all = [...inOther, await inStopped, await send(stopped, key, 40), await send(going, key, 40)];
    expect(admitted(...all)).toBeLessThanOrEqual(limit - 2);
    for (const { slowestMs } of inOther) expect(slowestMs).toBeLessThan(5000);
  });

  test("hold while something else has the lock of a key for seconds", async () => {
    const { id, key } = await createKey();
    await using database = new SQL(databaseUrl, { max: 1 });
    const [locked, waited] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const locking = database.begin(async (connection) => {
      await connection`select pg_advisory_xact_lock(7655444, ${id})`;
      locked.resolve();
      await waited.promise;
    });
    await locked.promise;
    const sent = await Promise.all(programs.map((program) => send(program, key, 40)));
    const later = await Promise.all(programs.map((program) => send(program, key, 40)));
    waited.resolve();
    await locking;
    expect(admitted(...sent, ...later)).toBeWithin(limit - 2, limit + 1);
    for (const { slowestMs } of sent) expect(slowestMs).toBeLessThan(5000);
    await areAllWell();
    await pollUntil(async () => admitted(await send(programs[0] as Program, key, 5)) === 0, 10_000);
  });

  /** So long as no process answers for what it has, plus what a loaded machine takes. */
  const servedMs = 15_000 + 10_000;

  /** One request of a key runs, others wait, and ends only after PostgreSQL has stopped. @returns how the others ended */
  async function outliveDatabase(runsAt: Program, waitsAt: Program, waiting: number): Promise<Sent> {
    const { key } = await admin.createKey("one", { max_concurrency: 1 });
    const leaving = new AbortController();
    const sent = { script: "slow-head=forever", signal: leaving.signal };
    const running = clientOf(runsAt.url, key)
      .send("/v1/chat/completions", { model: "m", messages: [] }, sent)
      .catch(() => {});
    await pollUntil(() => backend.stats().open === 1);
    const others = send(waitsAt, key, waiting);
    await pollUntil(async () => (await readMetric(waitsAt, "tollgate_queue_waiting_requests")) === waiting);
    await postgres.stop();
    leaving.abort();
    await running;
    try {
      return await others;
    } finally {
      await postgres.start();
    }
  }

  test("serve a key of which nothing runs while PostgreSQL is away, whatever ran in another one before", async () => {
    const { statuses, slowestMs } = await outliveDatabase(programs[0] as Program, programs[1] as Program, 1);
    expect(statuses).toEqual([200]);
    expect(slowestMs).toBeLessThan(servedMs);
    await areAllWell();
  });

  test("serve it in each process of one machine too", async () => {
    const program = await startProgram({ ...environment, PROCESSES: "2" });
    await pollUntil(async () => (await readMetric(program, "tollgate_processes")) === 2);
    const { statuses, slowestMs } = await outliveDatabase(program, program, 8);
    expect(statuses).toEqual(Array.from(statuses, () => 200));
    expect(slowestMs).toBeLessThan(servedMs);
    await areAllWell();
    await program.stop();
  });
});
