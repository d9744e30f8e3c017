import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { findFreePort } from "../support/free-port.ts";
import { type Program, type ProgramEnvironment, runProgram, startProgram } from "../support/program.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { pollUntil } from "../support/poll-until.ts";

let backend: Simulator;
beforeAll(() => {
  backend = startSimulator();
});
afterAll(() => backend.stop());

const count = 3;
const token = "scraper";

/** Starts a program and waits until all three processes respond. */
async function start(environment: ProgramEnvironment = {}): Promise<Program> {
  const program = await startProgram({
    PROXY_UPSTREAM_URL: backend.url,
    ADMIN_PASSWORD: "password",
    METRICS_TOKEN: token,
    PROCESSES: String(count),
    LOG_FORMAT: "json",
    ...environment,
  });
  await pollUntil(async () => (await scrape(program)).tollgate_processes === count);
  return program;
}

/** proc_pid_task_children(5). */
function childrenOf(pid: number): number[] {
  const listed = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return listed.split(" ").filter(Boolean).map(Number);
}

const isRunning = (pid: number): boolean => {
  try {
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
};

/** proc_net_tcp(5): the second field is the local address, state 0A is listening. */
const listenersOn = (port: number): number =>
  readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => state === "0A" && Number.parseInt(local?.split(":")[1] ?? "", 16) === port).length;

/** Each request uses a new connection, so that the kernel may give it to any process. */
const freshly = { headers: { connection: "close" } };

/** Unlabelled series, and the sum of `tollgate_requests_total`. */
async function scrape({ adminUrl }: Program): Promise<Record<string, number>> {
  const headers = { ...freshly.headers, authorization: `Bearer ${token}` };
  const text = await (await fetch(`${adminUrl}/metrics`, { headers })).text();
  const metrics: Record<string, number> = { requests: 0 };
  for (const [, name = "", labels, value] of text.matchAll(/^(\w+)(\{.*\})? (\S+)$/gm)) {
    if (labels === undefined) metrics[name] = Number(value);
    else if (name === "tollgate_requests_total") metrics["requests"] = (metrics["requests"] ?? 0) + Number(value);
  }
  return metrics;
}

const complete = (url: string, key: string): Promise<Response> =>
  fetch(`${url}/v1/messages`, {
    method: "POST",
    headers: { ...freshly.headers, "x-api-key": key, "content-type": "application/json", "x-simulate": "usage=5,7" },
    body: JSON.stringify({ model: "m", max_tokens: 7, messages: [{ role: "user", content: "Hi" }] }),
  });

async function stream({ url }: Program, key: string, script: string): Promise<RawClient> {
  const client = await connectRaw(url);
  const messages = [{ role: "user", content: "Hi" }];
  const body = { model: "m", stream: true, stream_options: { include_usage: true }, max_tokens: 6, messages };
  const headers = { "x-api-key": key, "Content-Type": "application/json", "x-simulate": script };
  client.request("POST", "/v1/chat/completions", headers, JSON.stringify(body));
  await client.nextEvent();
  return client;
}

const logged = (program: Program): Record<string, unknown>[] =>
  program
    .stdout()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));

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
  const program = await start({ LOG_LEVEL: "error" });
  const admin = await logIn(program.adminUrl, "admin", "password");
  const { key } = await admin.createKey("test");
  const [seen, ended, rounds, clients] = [{ requests: 0 }, new AbortController(), 6, 6];
  const load = Array.from({ length: clients }, () => sendUntilAborted(program, key, seen, ended.signal));
  const scraped: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const before = seen.requests;
    await pollUntil(() => seen.requests >= before + 40);
    scraped.push(await pollUntil(async () => (await scrape(program)).requests));
    const victim = childrenOf(program.pid)[round % count] ?? 0;
    process.kill(victim, "SIGKILL");
    await pollUntil(() => !isRunning(victim));
    // Retried, because a connection may still land on the victim's socket and be reset.
    scraped.push(await pollUntil(async () => (await scrape(program)).requests));
    await pollUntil(async () => (await scrape(program)).tollgate_processes === count);
  }
  ended.abort();
  await Promise.all(load);
  const [listed] = await (await logIn(program.adminUrl, "admin", "password")).listKeys();
  const stillCounted = await scrape(program);
  expect(await program.stop()).toBe(0);
  expect(listed?.total_request_count).toBeGreaterThanOrEqual(seen.requests);
  // At most the requests in progress at each kill were counted, although the client did not see their end.
  expect(listed?.total_request_count).toBeLessThanOrEqual(seen.requests + rounds * clients);
  expect(listed?.total_output_tokens).toBe((listed?.total_request_count ?? 0) * 7);
  expect(scraped).toEqual(scraped.toSorted((a, b) => a - b));
  expect(stillCounted["requests"]).toBeGreaterThanOrEqual(scraped.at(-1) ?? 0);
}, 120_000);

describe("several processes", () => {
  let program: Program;
  beforeAll(async () => {
    program = await start();
  });
  afterAll(async () => {
    await program.stop();
  });

  test("log their address once, and each line with its pid", () => {
    const lines = logged(program);
    expect(lines.filter(({ message }) => message === "Listening")).toMatchObject([
      { proxy: `${program.url}/v1`, processes: count },
    ]);
    expect(lines.filter(({ pid }) => typeof pid !== "number")).toEqual([]);
  });

  test("all refuse a key immediately after one of them disabled it", async () => {
    const admin = await logIn(program.adminUrl, "admin", "password");
    const { id, key } = await admin.createKey("revoked");
    const statuses = async (): Promise<Set<number>> =>
      new Set(await Promise.all(Array.from({ length: 24 }, async () => (await complete(program.url, key)).status)));
    expect(await statuses()).toEqual(new Set([200]));
    await admin.updateKey(id, { is_active: false });
    expect(await statuses()).toEqual(new Set([401]));
    await admin.updateKey(id, { is_active: true });
    expect(await statuses()).toEqual(new Set([200]));
  });

  test("all refuse a key immediately after it is disabled under load", async () => {
    const admin = await logIn(program.adminUrl, "admin", "password");
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
    const { key } = await (await logIn(program.adminUrl, "admin", "password")).createKey("summed");
    const { requests: before = 0 } = await scrape(program);
    await Promise.all(Array.from({ length: 30 }, async () => (await complete(program.url, key)).text()));
    for (let turn = 0; turn < 10; turn++) expect((await scrape(program)).requests).toBe(before + 30);
  });

  test("each report the requests in flight of all", async () => {
    const admin = await logIn(program.adminUrl, "admin", "password");
    const { key } = await admin.createKey("in flight");
    const clients = await Promise.all(Array.from({ length: 9 }, () => stream(program, key, "gap=forever@2")));
    for (let turn = 0; turn < 10; turn++) {
      const { headers } = freshly;
      const overview = await fetch(`${program.adminUrl}/api/overview`, {
        headers: { ...headers, cookie: admin.cookie },
      });
      expect(await overview.json()).toMatchObject({ in_flight: 9 });
      expect(await scrape(program)).toMatchObject({ tollgate_requests_in_flight: 9, tollgate_processes: count });
    }
    for (const client of clients) client.close();
  });

  test("replace one that receives a signal, after its streams have finished", async () => {
    const { key } = await (await logIn(program.adminUrl, "admin", "password")).createKey("drained");
    const clients = await Promise.all(Array.from({ length: 9 }, () => stream(program, key, "gap=1500ms@3")));
    const before = childrenOf(program.pid);
    const [leaving = 0] = before;
    process.kill(leaving, "SIGTERM");
    for (const client of clients) {
      expect(await client.ended()).toBe("complete");
      expect(await client.text()).toEndWith("data: [DONE]\n\n");
    }
    await pollUntil(() => !childrenOf(program.pid).includes(leaving));
    await pollUntil(async () => (await scrape(program)).tollgate_processes === count);
    const after = childrenOf(program.pid);
    expect(after).toHaveLength(count);
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

describe("the parent", () => {
  test.each(["SIGTERM", "SIGINT"] as const)(
    "forwards %s, waits until all processes have drained, and exits with 0",
    async (signal) => {
      const program = await start();
      const { key } = await (await logIn(program.adminUrl, "admin", "password")).createKey("test");
      const clients = await Promise.all(Array.from({ length: 6 }, () => stream(program, key, "gap=1500ms@3")));
      const stopped = program.stop(signal);
      for (const client of clients) expect(await client.ended()).toBe("complete");
      expect(await stopped).toBe(0);
      expect(logged(program).filter(({ level }) => level === "warn" || level === "error")).toEqual([]);
    },
  );

  test("ends everything immediately on a second signal", async () => {
    const program = await start({ SHUTDOWN_GRACE: "600" });
    const children = childrenOf(program.pid);
    const { key } = await (await logIn(program.adminUrl, "admin", "password")).createKey("test");
    const client = await stream(program, key, "gap=forever@2");
    void program.stop();
    await pollUntil(() => children.some((pid) => !isRunning(pid)));
    expect(await program.stop()).toBe(1);
    expect(await client.ended()).not.toBe("complete");
    await pollUntil(() => !children.some(isRunning));
  });

  test("leaves no orphans if it is killed, and its children finish their requests", async () => {
    const program = await start();
    const children = childrenOf(program.pid);
    const { key } = await (await logIn(program.adminUrl, "admin", "password")).createKey("test");
    const clients = await Promise.all(Array.from({ length: 6 }, () => stream(program, key, "gap=1000ms@3")));
    await program.stop("SIGKILL");
    for (const client of clients) expect(await client.ended()).toBe("complete");
    await pollUntil(() => !children.some(isRunning));
  });

  test.each(["1", "2"])("does not share its port with a second program with PROCESSES=%s", async (processes) => {
    const program = await start();
    const { status, stderr } = await runProgram(["serve"], { PORT: new URL(program.url).port, PROCESSES: processes });
    expect(status).toBe(1);
    expect(stderr).toBe(`tollgate: port ${new URL(program.url).port} on 127.0.0.1 is in use by another program\n`);
    await program.stop();
  });

  test("keeps the admin side's address and port from a second copy that listens elsewhere for /v1", async () => {
    const environment = { ADMIN_HOST: "127.0.0.1", ADMIN_PORT: String(findFreePort()) };
    const program = await start({ ...environment, HOST: "127.0.0.2" });
    const { status, stderr } = await runProgram(["serve"], {
      ...environment,
      HOST: "127.0.0.3",
      PORT: "0",
      PROCESSES: "2",
    });
    expect([status, stderr]).toEqual([1, expect.stringContaining(`port ${environment.ADMIN_PORT} on 127.0.0.1`)]);
    await program.stop();
  });

  test.each(["PORT", "ADMIN_PORT"])("reports in one line that %s is in use", async (variable) => {
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as { port: number };
    const { status, stderr } = await runProgram(["serve"], { PORT: "0", PROCESSES: "2", [variable]: String(port) });
    expect(status).toBe(1);
    expect(stderr).toBe(`tollgate: port ${port} on 127.0.0.1 is in use by another program\n`);
    other.close();
  });

  test("exits with the error of its first process", async () => {
    const { status, stderr } = await runProgram(["serve"], { PORT: "0", PROCESSES: "2", DATA_DIR: "/proc/nowhere" });
    expect(status).toBe(1);
    expect(stderr).toStartWith('tollgate: DATA_DIR "/proc/nowhere"');
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  test("gives all processes the ports of the first one, and prints one password", async () => {
    const program = await start({ PORT: "0", ADMIN_PORT: String(findFreePort()), ADMIN_PASSWORD: "" });
    const { proxy } = logged(program).find(({ message }) => message === "Listening") as { proxy: string };
    expect((await fetch(`${proxy}/models`)).status).toBe(401);
    expect(listenersOn(Number(new URL(proxy).port))).toBe(count);
    expect(program.stdout().match(/password {3}\S+/g)).toHaveLength(1);
    await program.stop();
  });

  test("warns once, not once for each process, that the backend does not respond", async () => {
    const program = await start({ PROXY_UPSTREAM_URL: "http://127.0.0.1:1" });
    await program.stop();
    const warnings = logged(program).filter(({ level }) => level === "warn");
    expect(warnings).toMatchObject([{ message: "Backend not reachable; requests fail until it is" }]);
  });
});

test("serve-process run by hand is an error that refers to PROCESSES", async () => {
  const { status, stderr } = await runProgram(["serve-process"]);
  expect(status).toBe(2);
  expect(stderr).toBe("tollgate: serve-process cannot be started directly; set PROCESSES instead\n");
});
