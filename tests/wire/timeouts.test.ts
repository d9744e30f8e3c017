import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { fixedCatalog } from "../../src/config/catalog.ts";
import { type BusyBackend, startBlackhole, startBusyBackend } from "../support/blackhole.ts";
import { catalogWith } from "../support/catalog.ts";
import { startSimulator } from "../support/simulator/simulator.ts";
import type { RawClient } from "../support/raw-client.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());
const gate = shared(() =>
  startTollgate({
    PROXY_UPSTREAM_URL: backend.url,
    // A loaded machine takes long for the head of a response, and between two events.
    PROXY_STREAM_READ_TIMEOUT: "8",
    PROXY_NONSTREAM_READ_TIMEOUT: "2",
  }),
);

const post = (script: string, stream: boolean): Promise<RawClient> => {
  const body = { model: "m", stream, max_tokens: 6, messages: [{ role: "user", content: "Hi" }] };
  return gate.sendRaw("/v1/chat/completions", body, { script });
};

// Each waits and does nothing else.
describe.concurrent("the read timeout", () => {
  test("of a request that is not streamed limits the wait for the head; the 504 must not be retried", async () => {
    const client = await post("slow-head=forever", false);
    const head = await client.head();
    expect(head.status).toBe(504);
    expect(head.header("x-should-retry")).toBe("false");
    expect(await client.json()).toEqual({
      type: "error",
      error: {
        type: "timeout_error",
        message: "The backend did not respond in time.",
        param: null,
        code: "upstream_timeout",
      },
    });
    const entry = await gate.waitForLog(({ requestId }) => requestId === head.header("x-request-id"));
    const cause = "first_byte_timeout";
    expect(entry).toMatchObject({ status: 504, outcome: "timed_out", code: "upstream_timeout", cause });
    client.close();
  });

  test("limits every gap inside a stream, which then breaks", async () => {
    const client = await post("gap=forever@2", true);
    expect(await client.ended()).not.toBe("complete");
    const events = (await client.text()).split("\n\n").filter(Boolean);
    expect(JSON.parse(events.at(-1)?.slice("data: ".length) ?? "")).toMatchObject({
      error: { type: "timeout_error", code: "upstream_timeout" },
    });
    const sent = backend.requests().find((request) => request.header("x-simulate") === "gap=forever@2");
    expect((await sent?.ended)?.how).toBe("aborted");
    const id = (await client.head()).header("x-request-id");
    const entry = await gate.waitForLog(({ requestId }) => requestId === id);
    const cause = "between_bytes_timeout";
    expect(entry).toMatchObject({ outcome: "timed_out", code: "upstream_timeout", cause });
    expect(entry["receivedBytes"]).toBeGreaterThan(0);
  });

  test("of a stream is the stream timeout, also for the first byte", async () => {
    const patient = await post("slow-head=1s", true);
    expect((await patient.head()).status).toBe(200);
    expect(await patient.ended()).toBe("complete");
    const late = await post("slow-head=forever", true);
    expect((await late.head()).status).toBe(504);
    late.close();
  });

  test.each<[string, object | string | undefined, number]>([
    ["POST", { stream: true }, 200],
    ["POST", { stream: false }, 504],
    ["POST", {}, 504],
    ["POST", "no JSON", 504],
    ["PUT", { stream: true }, 504],
    ["GET", undefined, 504],
  ])(
    "of a %s of %j gives it %i where the head takes longer than that of a whole response may",
    async (method, body, status) => {
      const response = await gate.send("/v1/anything", body, { method, script: "slow-head=4s" });
      expect(response.status).toBe(status);
      await response.bytes();
    },
  );

  test("restarts with every byte, so that a whole response may take far longer", async () => {
    const client = await post("gap=2s@1; gap=2s@2; gap=2s@3; gap=2s@4", true);
    expect(await client.ended()).toBe("complete");
    client.close();
  });

  test("limits a gap inside a body that is not a stream", async () => {
    const client = await gate.sendRaw("/v1/files/1", undefined, { script: "body=3MB; split=1MB; gap=forever@1" });
    expect(await client.ended()).not.toBe("complete");
  });

  test("does not run while the client is slow to read", async () => {
    const client = await post("tokens=200000; rate=0", true);
    await client.nextEvent();
    client.pause();
    // Plays a client that stalls for longer than the timeout.
    await Bun.sleep(10_000);
    client.resume();
    expect(await client.ended()).toBe("complete");
    expect(await client.text()).toEndWith("data: [DONE]\n\n");
    client.close();
  });
});

describe.concurrent("the connect timeout", () => {
  test("ends a request after ten seconds if the backend neither accepts nor refuses connections", async () => {
    using blackhole = await startBlackhole();
    await using lost = await startTollgate({ PROXY_UPSTREAM_URL: blackhole.url });
    const begun = performance.now();
    const response = await lost.send("/v1/models");
    expect(response.status).toBe(504);
    expect(await response.json()).toMatchObject({ error: { code: "upstream_timeout" } });
    expect(performance.now() - begun).toBeWithin(9_500, 30_000);
    expect(await lost.waitForLog(({ status }) => status === 504)).toMatchObject({ cause: "connect_timeout" });
  });

  test("leaves the request alone that a backend works on while it accepts no further connection", async () => {
    using busy = startBusyBackend();
    await using saturated = await startTollgate({ PROXY_UPSTREAM_URL: busy.url });
    const send = () => saturated.send("/v1/models");
    const first = send();
    await pollUntil(busy.isTaken);
    const others = await Promise.all([send(), send(), send()]);
    expect(others.map(({ status }) => status)).toEqual([504, 504, 504]);
    busy.respond();
    expect((await first).status).toBe(200);
  });

  test("does not apply once the backend has accepted the connection", async () => {
    await using patient = await startTollgate({ PROXY_UPSTREAM_URL: backend.url });
    const response = await patient.send("/v1/anything", undefined, { script: "slow-head=13s" });
    expect(response.status).toBe(200);
  });

  const startBefore = (url: string, readTimeout = "60"): Promise<Tollgate> =>
    startTollgate({ PROXY_UPSTREAM_URL: url, PROXY_NONSTREAM_READ_TIMEOUT: readTimeout });
  /** Longer than the connect timeout. */
  const readTimeout = "13";

  /** @returns the status of a request, and what the log names as the cause of a failure */
  async function ask(tollgate: Tollgate, method = "POST"): Promise<unknown[]> {
    const response = await tollgate.send("/v1/embeddings", method === "POST" ? {} : undefined);
    await response.bytes();
    if (response.ok) return [response.status];
    const { cause } = await tollgate.waitForLog(({ status }) => status === response.status);
    return [response.status, cause];
  }

  async function respondToFirst(tollgate: Tollgate, busy: BusyBackend, connection?: "keep"): Promise<void> {
    const first = ask(tollgate);
    await pollUntil(busy.isTaken);
    busy.respond(connection);
    expect(await first).toEqual([200]);
  }

  async function fill({ port, isTaken }: BusyBackend): Promise<Disposable> {
    const filler = connect(port, "127.0.0.1");
    await pollUntil(isTaken);
    return { [Symbol.dispose]: () => void filler.destroy() };
  }

  test("ends a POST that was never sent, so that another backend gets it", async () => {
    using blackhole = await startBlackhole();
    const backends = [
      { name: "first", url: blackhole.url },
      { name: "second", url: backend.url, spill: true },
    ];
    await using spared = await startTollgate({}, { catalog: fixedCatalog(catalogWith(backends, [{ name: "m" }])) });
    const response = await spared.send("/v1/embeddings", { model: "m" }, { headers: { "x-tollgate-debug": "1" } });
    const debugged = ["backend", "sends", "reason"].map((name) => response.headers.get(`x-tollgate-${name}`));
    expect([response.status, ...debugged]).toEqual([200, "second", "1", "failover"]);
  });

  test("comes for a backend that goes silent just after a response", async () => {
    using busy = startBusyBackend();
    await using gone = await startBefore(busy.url);
    await respondToFirst(gone, busy);
    using _ = await fill(busy);
    expect(await ask(gone)).toEqual([504, "connect_timeout"]);
  });

  test("comes for a backend that closes the kept connections before it goes silent", async () => {
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("ok") });
    const { port = 0 } = server;
    await using gone = await startBefore(`http://127.0.0.1:${port}`);
    expect(await ask(gone)).toEqual([200]);
    await server.stop(true);
    using _ = await startBlackhole({ host: "127.0.0.1", port });
    expect(await ask(gone)).toEqual([504, "connect_timeout"]);
  });

  test("leaves the request alone that a backend works on just after a response", async () => {
    using busy = startBusyBackend();
    await using saturated = await startBefore(busy.url);
    await respondToFirst(saturated, busy);
    const second = ask(saturated);
    await pollUntil(busy.isTaken);
    expect(await ask(saturated)).toEqual([504, "connect_timeout"]);
    busy.respond();
    expect(await second).toEqual([200]);
  });

  test("does not apply to a kept connection whose other end is silent", async () => {
    using busy = startBusyBackend();
    await using silenced = await startBefore(busy.url, readTimeout);
    await respondToFirst(silenced, busy, "keep");
    using _ = await fill(busy);
    // A POST would take a new connection if this one had been idle for long.
    expect(await ask(silenced, "GET")).toEqual([504, "first_byte_timeout"]);
  });

  test("does not apply once a balancer has accepted the connection, although TLS does not begin", async () => {
    using balancer = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
    await using behind = await startBefore(`https://127.0.0.1:${balancer.port}`, readTimeout);
    expect(await ask(behind)).toEqual([504, "first_byte_timeout"]);
  });
});

test("a stream with only heartbeats for three timeouts since its content is marked, and one line in the log", async () => {
  let send: (event: string) => void = () => {};
  const beating = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () =>
      new Response(
        new ReadableStream({
          start(controller) {
            send = (event) => controller.enqueue(Buffer.from(`${event}\n\n`));
          },
        }),
        { headers: { "content-type": "text/event-stream" } },
      ),
  });
  const timeoutMs = 800;
  await using other = await startTollgate({
    PROXY_UPSTREAM_URL: `http://127.0.0.1:${beating.port}`,
    PROXY_STREAM_READ_TIMEOUT: String(timeoutMs / 1000),
  });
  const heartbeats = async () => (await other.admin.listRunning()).map(({ heartbeats_ms: ms }) => ms);
  const empty = [": ping", "event: ping\ndata: {}", 'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}'];
  let beats = 0;
  const timer = setInterval(() => send(empty[beats++ % 3] ?? ""), timeoutMs / 10);
  const content = 'data: {"choices":[{"delta":{"content":"Hi"}}]}';

  const response = await other.send("/v1/chat/completions", { stream: true });
  const got = response.text();
  // For longer than it takes to be marked without content.
  const start = performance.now();
  while (performance.now() - start < 5 * timeoutMs) {
    send(content);
    expect(await heartbeats()).toEqual([null]);
    await Bun.sleep(timeoutMs / 10);
  }
  const since = performance.now();
  const line = await other.waitForLog(({ message }) => message === "Stream has had only heartbeats for three timeouts");
  expect(performance.now() - since).toBeGreaterThan(2.9 * timeoutMs);
  expect(line).toMatchObject({ level: "warn", requestId: response.headers.get("x-request-id") });
  const [ms] = await heartbeats();
  expect(ms).toBeGreaterThanOrEqual(3 * timeoutMs);

  send(content);
  await pollUntil(async () => (await heartbeats())[0] === null);
  send("data: [DONE]");
  clearInterval(timer);
  await beating.stop(true);
  await got.catch(() => {});
  expect(other.log.filter(({ message }) => message === line["message"])).toHaveLength(1);
});
