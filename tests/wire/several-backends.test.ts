import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { fixedCatalog } from "../../src/config/catalog.ts";
import type { Environment } from "../../src/config/config.ts";
import { mostAtOnce } from "../support/simulator/request.ts";
import type { Simulator } from "../support/simulator/simulator.ts";
import { catalogWith } from "../support/catalog.ts";
import { clientOf } from "../support/client.ts";
import { startEngine } from "../support/engine.ts";
import { pollUntil } from "../support/poll-until.ts";
import { childrenOf } from "../support/proc.ts";
import { startProgramWithKey } from "../support/program-with-key.ts";
import type { RawClient } from "../support/raw-client.ts";
import { startBackends } from "../support/several-backends.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

const chat = { model: "m", max_tokens: 2, messages: [{ role: "user", content: "Hi" }] };

interface Posted {
  content?: string;
  signal?: AbortSignal;
}

function post(url: string, key: string, script = "", { content = "Hi", signal }: Posted = {}): Promise<Response> {
  const sent = { script, headers: { connection: "close" }, ...(signal && { signal }) };
  const body = { ...chat, messages: [{ role: "user", content }] };
  return clientOf(url, key).send("/v1/chat/completions", body, sent);
}

const postStream = ({ sendRaw }: Tollgate, script = ""): Promise<RawClient> =>
  sendRaw("/v1/chat/completions", { ...chat, stream: true }, { script });

/** The chat requests that a backend got; it is asked for its models too. */
const chatsOf = (backend: Simulator) => backend.requests().filter(({ path }) => path === "/v1/chat/completions");
const chats = (backend: Simulator): number => chatsOf(backend).length;

const waiting = async ({ admin }: Pick<Tollgate, "admin">): Promise<number> =>
  Number(/^tollgate_queue_waiting_requests (\d+)$/m.exec(await (await admin.request("GET", "/metrics")).text())?.[1]);

const isLogged = (message: string, backend: string) => (entry: Readonly<Record<string, unknown>>) =>
  entry["message"] === message && entry["backend"] === backend;

describe("with several backends", () => {
  test("each gets no more than its places, and a place that becomes free at either goes to what waits", async () => {
    using backends = startBackends({ a: "max_concurrency: 1", b: "max_concurrency: 2" });
    await using gate = await startTollgate({ MODELS_FILE: backends.file });
    const running = await Promise.all(Array.from({ length: 3 }, () => postStream(gate, "gap=forever@1")));
    await Promise.all(running.map((client) => client.nextEvent()));
    expect([chats(backends.get("a")), chats(backends.get("b"))]).toEqual([1, 2]);
    const late = post(gate.url, gate.key);
    await pollUntil(async () => (await waiting(gate)) === 1);
    expect([chats(backends.get("a")), chats(backends.get("b"))]).toEqual([1, 2]);
    running[0]?.reset();
    expect((await late).status).toBe(200);
    for (const client of running) client.reset();
  });

  test("one that is gone is out after two connections, takes nothing, and is back by itself", async () => {
    using backends = startBackends({ a: "", b: "" });
    await using gate = await startTollgate({ MODELS_FILE: backends.file });
    backends.stop("a");
    const before = Array.from({ length: 8 }, () => post(gate.url, gate.key, "slow-head=100ms"));
    expect((await Promise.all(before)).map(({ status }) => status)).toEqual(before.map(() => 200));
    await gate.waitForLog(isLogged("Backend out", "a"));
    expect(chats(backends.get("b"))).toBe(8);
    backends.restart("a");
    await gate.waitForLog(isLogged("Backend back", "a"));
    const after = Array.from({ length: 8 }, () => post(gate.url, gate.key, "slow-head=100ms"));
    expect((await Promise.all(after)).map(({ status }) => status)).toEqual(after.map(() => 200));
    expect(chats(backends.get("a"))).toBeGreaterThan(0);
    expect(chats(backends.get("a")) + chats(backends.get("b"))).toBe(16);
  });

  test("what met a refusal goes to that backend once it is back, though the other is full for long", async () => {
    using backends = startBackends({ a: "", b: "max_concurrency: 1" });
    await using gate = await startTollgate({ MODELS_FILE: backends.file });
    backends.stop("a");
    const long = await postStream(gate, "gap=forever@1");
    await long.nextEvent();
    expect(chats(backends.get("b"))).toBe(1);
    const waits = [post(gate.url, gate.key), post(gate.url, gate.key)];
    await gate.waitForLog(isLogged("Backend out", "a"));
    await pollUntil(async () => (await waiting(gate)) === 2);
    backends.restart("a");
    expect((await Promise.all(waits)).map(({ status }) => status)).toEqual([200, 200]);
    expect([chats(backends.get("a")), chats(backends.get("b"))]).toEqual([2, 1]);
    long.reset();
  });

  test.each([503, "gone"] as const)(
    "one that takes connections and is dead (%p) is out after three failures",
    async (how) => {
      using alive = startEngine("alive");
      using dead = startEngine("dead");
      const catalog = catalogWith([alive, dead].map(({ name, url }) => ({ name, url })));
      await using gate = await startTollgate({}, { catalog: fixedCatalog(catalog) });
      dead.behaves = how;
      const sendAtOnce = () =>
        Promise.all(Array.from({ length: 8 }, async () => (await post(gate.url, gate.key)).status));
      let failures = 0;
      await pollUntil(async () => {
        failures += (await sendAtOnce()).filter((status) => status >= 502).length;
        return failures >= 3;
      });
      await gate.waitForLog(isLogged("Backend out", "dead"));
      expect(await sendAtOnce()).toEqual(Array.from({ length: 8 }, () => 200));
      dead.behaves = "works";
      await gate.waitForLog(isLogged("Backend back", "dead"));
    },
  );

  test.each([500, 404])("one that fails fast (%p), although it is up, gets few requests", async (status) => {
    using alive = startEngine("alive");
    using failing = startEngine("failing");
    const catalog = catalogWith([alive, failing].map(({ name, url }) => ({ name, url })));
    await using gate = await startTollgate({}, { catalog: fixedCatalog(catalog) });
    failing.behaves = status;
    async function converse(client: number): Promise<void> {
      for (let turn = 0; turn < 20; turn++) await post(gate.url, gate.key, "", { content: `${client} ${turn}` });
    }
    await Promise.all(Array.from({ length: 6 }, (_, client) => converse(client)));
    expect(alive.executions.size + failing.executions.size).toBe(120);
    expect(failing.executions.size).toBeWithin(1, 40);
    expect(gate.log.some(isLogged("Backend out", "failing"))).toBeFalse();
  });

  test("one that is back takes requests, though one from before still waits there", async () => {
    using alive = startEngine("alive");
    using lost = startEngine("lost");
    const catalog = catalogWith([alive, lost].map(({ name, url }) => ({ name, url })));
    await using gate = await startTollgate({}, { catalog: fixedCatalog(catalog) });
    const sendAtOnce = () =>
      Promise.all(Array.from({ length: 8 }, async () => (await post(gate.url, gate.key)).status));
    lost.behaves = "hangs";
    const stuck = new AbortController();
    const waits = Promise.allSettled(
      Array.from({ length: 2 }, () => post(gate.url, gate.key, "", { signal: stuck.signal })),
    );
    await pollUntil(() => lost.executions.size > 0);
    lost.behaves = 503;
    await pollUntil(async () => {
      await sendAtOnce();
      return gate.log.some(isLogged("Backend out", "lost"));
    });
    lost.behaves = "works";
    await gate.waitForLog(isLogged("Backend back", "lost"));
    const before = lost.executions.size;
    expect(await sendAtOnce()).toEqual(Array.from({ length: 8 }, () => 200));
    expect(lost.executions.size).toBeGreaterThan(before);
    stuck.abort();
    await waits;
  });

  test("a client gets 502 at once while all are out", async () => {
    using backends = startBackends({ a: "", b: "" });
    await using gate = await startTollgate({ MODELS_FILE: backends.file });
    for (const name of ["a", "b"]) backends.stop(name);
    for (let n = 0; n < 4; n++) {
      const response = await post(gate.url, gate.key);
      expect([response.status, await response.json()]).toMatchObject([
        502,
        { error: { code: "upstream_unreachable" } },
      ]);
    }
    for (const name of ["a", "b"]) await gate.waitForLog(isLogged("Backend out", name));
  });
});

describe("PROXY_BACKEND_WAIT", () => {
  /** A gate with one backend, which is gone. */
  async function startAlone(environment: Environment) {
    const backends = startBackends({ a: "" });
    const { url } = backends.get("a");
    const gate = await startTollgate({ PROXY_UPSTREAM_URL: url, PROXY_BACKEND_WAIT: "30", ...environment });
    backends.stop("a");
    return {
      backends,
      gate,
      async [Symbol.asyncDispose]() {
        await gate[Symbol.asyncDispose]();
        backends[Symbol.dispose]();
      },
    };
  }

  test("holds requests until the only backend has an address at which it is, and sends them there", async () => {
    using backends = startBackends({ a: "" });
    using moved = startBackends({ a: "" });
    await using gate = await startTollgate({ MODELS_FILE: backends.file, PROXY_BACKEND_WAIT: "30" });
    backends.stop("a");
    const waits = [post(gate.url, gate.key), post(gate.url, gate.key)];
    await gate.waitForLog(isLogged("Backend out", "a"));
    await pollUntil(async () => (await waiting(gate)) === 2);
    writeFileSync(backends.file, readFileSync(moved.file));
    await gate.waitForLog(isLogged("Backend back", "a"));
    expect((await Promise.all(waits)).map(({ status }) => status)).toEqual([200, 200]);
    expect(chats(moved.get("a"))).toBe(2);
  });

  test("holds requests until the only backend is back, and streams are told where they stand", async () => {
    await using alone = await startAlone({ PROXY_SSE_KEEPALIVE: "0.1" });
    const { backends, gate } = alone;
    const whole = post(gate.url, gate.key);
    await gate.waitForLog(({ message }) => message === "Backend out");
    await pollUntil(async () => (await waiting(gate)) === 1);
    const streams = [await postStream(gate)];
    expect(await streams[0]?.nextEvent()).toBe(": waiting, 2 of 2\n: keepalive\n\n");
    streams.push(await postStream(gate));
    expect(await streams[1]?.nextEvent()).toBe(": waiting, 3 of 3\n: keepalive\n\n");
    backends.restart("a");
    expect((await whole).status).toBe(200);
    for (const stream of streams) {
      expect(await stream.text()).toEndWith("data: [DONE]\n\n");
      expect(await stream.ended()).toBe("complete");
    }
    expect(await mostAtOnce(chatsOf(backends.get("a")))).toBeLessThanOrEqual(2);
    expect(chats(backends.get("a"))).toBe(3);
  });

  test("holds what waited for another backend, which went out too, until any of them is back", async () => {
    using backends = startBackends({ a: "", b: "max_concurrency: 1" });
    await using gate = await startTollgate({ MODELS_FILE: backends.file, PROXY_BACKEND_WAIT: "30" });
    const others = [await gate.admin.createKey("second"), await gate.admin.createKey("third")];
    backends.stop("a");
    const long = await postStream(gate, "gap=forever@1");
    await long.nextEvent();
    const waits = [post(gate.url, gate.key), post(gate.url, gate.key)];
    await gate.waitForLog(isLogged("Backend out", "a"));
    // The place at the other one becomes free as it goes, and goes to those that were not served yet.
    waits.push(...others.map(({ key }) => post(gate.url, key)));
    await pollUntil(async () => (await waiting(gate)) === 4);
    backends.stop("b");
    await gate.waitForLog(isLogged("Backend out", "b"));
    await pollUntil(async () => (await waiting(gate)) === 4);
    backends.restart("a");
    expect((await Promise.all(waits)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(chats(backends.get("a"))).toBe(4);
  });

  test("takes nothing from the limits of a key meanwhile", async () => {
    await using alone = await startAlone({});
    const { backends, gate } = alone;
    const first = post(gate.url, gate.key);
    await gate.waitForLog(({ message }) => message === "Backend out");
    const { key, id } = await gate.admin.createKey("limited", { max_concurrency: 1, requests_per_minute: 3 });
    const requests = Array.from({ length: 3 }, () => post(gate.url, key));
    await pollUntil(async () => (await waiting(gate)) === 4);
    const used = async (): Promise<unknown> => (await gate.admin.listKeys()).find((one) => one.id === id)?.used;
    expect(await used()).toMatchObject({ max_concurrency: 0, requests_per_minute: 0 });
    backends.restart("a");
    expect((await Promise.all([first, ...requests])).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(await used()).toMatchObject({ requests_per_minute: 3 });
    expect((await post(gate.url, key)).status).toBe(429);
  });

  test("ends with 503, and a time to come again", async () => {
    await using alone = await startAlone({ PROXY_BACKEND_WAIT: "1", PROXY_SSE_KEEPALIVE: "0.1" });
    const { gate } = alone;
    const [response, stream] = [await post(gate.url, gate.key), await postStream(gate)];
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "10"]);
    expect(await response.json()).toMatchObject({ error: { type: "api_error", code: "backend_unavailable" } });
    expect(await stream.text()).toContain('"code":"backend_unavailable"');
    expect(await stream.ended()).not.toBe("complete");
  });

  test("has room for PROXY_QUEUE_SIZE requests", async () => {
    await using alone = await startAlone({ PROXY_QUEUE_SIZE: "1" });
    const { backends, gate } = alone;
    const first = post(gate.url, gate.key);
    await gate.waitForLog(({ message }) => message === "Backend out");
    await pollUntil(async () => (await waiting(gate)) === 1);
    expect((await post(gate.url, gate.key)).status).toBe(503);
    backends.restart("a");
    expect((await first).status).toBe(200);
  });
});

describe("with several backends and PROCESSES", () => {
  const startProcesses = (file: string) =>
    startProgramWithKey(undefined, { MODELS_FILE: file, PROCESSES: "2", LOG_FORMAT: "json", LOG_LEVEL: "info" });

  test("the places of each hold over all processes, and one that is out is out for all", async () => {
    using backends = startBackends({ a: "max_concurrency: 1", b: "max_concurrency: 3" });
    const program = await startProcesses(backends.file);
    const send = async (count: number): Promise<number[]> => {
      const requests = Array.from({ length: count }, () => post(program.url, program.key, "slow-head=150ms"));
      return (await Promise.all(requests)).map(({ status }) => status);
    };
    expect(await send(24)).toEqual(Array.from({ length: 24 }, () => 200));
    expect([await mostAtOnce(chatsOf(backends.get("a"))), await mostAtOnce(chatsOf(backends.get("b")))]).toEqual([
      1, 3,
    ]);
    backends.stop("b");
    expect(await send(12)).toEqual(Array.from({ length: 12 }, () => 200));
    expect(await mostAtOnce(chatsOf(backends.get("a")))).toBe(1);
    await pollUntil(() => program.stdout().includes('"message":"Backend out"'));
    backends.restart("b");
    await pollUntil(() => program.stdout().includes('"message":"Backend back"'));
    expect(await send(12)).toEqual(Array.from({ length: 12 }, () => 200));
    expect(chats(backends.get("b"))).toBeGreaterThan(0);
    await program.stop();
  });

  test("a changed file is taken over by all, and a process that starts while it has a fault goes on without it", async () => {
    using backends = startBackends({ a: "" });
    const program = await startProcesses(backends.file);
    const entries = (message: string): number => program.stdout().split(`"message":"${message}"`).length - 1;
    const good = readFileSync(backends.file, "utf8");
    writeFileSync(backends.file, good.replace("  m:", "  m2:").concat("default_model: m2\n"));
    // The parent and both of its processes.
    await pollUntil(() => entries("Models file changed and in use") === 3);
    writeFileSync(backends.file, `${good}nonsense: true\n`);
    await pollUntil(() => entries("Models file changed, and the earlier one stays in use") > 0);
    const before = childrenOf(program.pid);
    process.kill(before[0] ?? Number.NaN, "SIGKILL");
    await pollUntil(() => {
      const now = childrenOf(program.pid);
      return now.length === 2 && !now.includes(before[0] ?? Number.NaN);
    });
    await pollUntil(() => entries("Models file in use") === 4);
    // The one that ran may go: what serves then is the one that came.
    process.kill(before[1] ?? Number.NaN, "SIGKILL");
    await pollUntil(() => entries("Models file in use") === 5);
    // Nothing listens for a moment.
    await pollUntil(async () => (await post(program.url, program.key).catch(() => undefined))?.status === 200);
    const [sent] = chatsOf(backends.get("a"));
    expect(JSON.parse(new TextDecoder().decode(sent?.body()))).toMatchObject({ model: "m2" });
    expect(entries("Models file changed, and the earlier one stays in use")).toBe(1);
    await program.stop();
  });

  test("requests are sent on without a parent that replies", async () => {
    using backends = startBackends({ a: "", b: "" });
    const program = await startProcesses(backends.file);
    process.kill(program.pid, "SIGSTOP");
    const requests = Array.from({ length: 6 }, () => post(program.url, program.key, "slow-head=100ms"));
    expect((await Promise.all(requests)).map(({ status }) => status)).toEqual(requests.map(() => 200));
    for (const name of ["a", "b"]) expect(chats(backends.get(name))).toBeGreaterThan(0);
    process.kill(program.pid, "SIGCONT");
    await program.stop();
  });
});
