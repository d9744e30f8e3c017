import { beforeEach, describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { clientOf } from "../support/client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startProgramWithKey } from "../support/program-with-key.ts";
import type { RawClient } from "../support/raw-client.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());
beforeEach(() => backend.clear());

const chat = { model: "m", max_tokens: 2, messages: [{ role: "user", content: "Hi" }] };
const stream = { ...chat, stream: true };

function post(url: string, key: string, script: string, signal?: AbortSignal): Promise<Response> {
  const sent = { script, headers: { connection: "close" }, ...(signal && { signal }) };
  return clientOf(url, key).send("/v1/chat/completions", chat, sent);
}

const postRaw = (gate: Tollgate, script: string, path = "/v1/chat/completions"): Promise<RawClient> =>
  gate.sendRaw(path, stream, { script });

const start = (environment: Record<string, string>) =>
  startTollgate({ PROXY_UPSTREAM_URL: backend.url, ...environment });

interface Running {
  id: string;
  key_id: number;
  backend: string | null;
  state: string;
}

/** The requests that wait in the queue: nothing was sent. */
async function listQueued({ admin }: Pick<Tollgate, "admin">): Promise<Running[]> {
  const { requests } = await admin.expectOk<{ requests: Running[] }>("GET", "/api/in-flight");
  return requests.filter(({ backend: sentTo, state }) => sentTo === null && state === "queued");
}

/** Resolves with the first request of a key that waits. */
const queued = (gate: Tollgate, keyId = gate.keyId): Promise<Running> =>
  pollUntil(async () => (await listQueued(gate)).find((one) => one.key_id === keyId));

describe("PROXY_MAX_CONCURRENCY", () => {
  // Order and displacement: tests/routing/fair-queue.test.ts.
  test("responds to each request that it refuses or ends, and sends the backend none of them", async () => {
    await using gate = await start({ PROXY_MAX_CONCURRENCY: "1", PROXY_QUEUE_SIZE: "1" });
    const { id: otherId, key: other } = await gate.admin.createKey("other");
    const first = await postRaw(gate, "gap=forever@1");
    await first.nextEvent();

    const left = await postRaw(gate, "");
    await queued(gate);
    left.reset();
    await gate.waitForLog(({ outcome }) => outcome === "client_left");

    const ended = post(gate.url, gate.key, "");
    const { id } = await queued(gate);
    await gate.admin.expectOk("DELETE", `/api/in-flight/${id}`);
    expect([(await ended).status, await (await ended).json()]).toMatchObject([
      400,
      { error: { code: "ended_by_admin" } },
    ]);
    expect(await gate.waitForLog(({ outcome }) => outcome === "ended_by_admin")).toMatchObject({ status: 400 });

    const displaced = post(gate.url, gate.key, "");
    await queued(gate);
    const waiting = post(gate.url, other, "");
    await queued(gate, otherId);
    const full = await post(gate.url, gate.key, "");
    for (const refused of [await displaced, full]) {
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
      expect(await refused.json()).toMatchObject({ error: { type: "api_error", code: "queue_full" } });
    }

    await gate.admin.updateKey(otherId, { is_active: false, end_running: true });
    expect((await waiting).status).toBe(401);

    const next = post(gate.url, gate.key, "");
    await queued(gate);
    expect(backend.requests()).toHaveLength(1);
    first.close();
    expect((await next).status).toBe(200);
    expect(backend.requests()).toHaveLength(2);
  });

  test("refuses requests that wait longer than PROXY_QUEUE_TIMEOUT, and ends their streams with an error event, never cleanly", async () => {
    await using gate = await start({
      PROXY_MAX_CONCURRENCY: "1",
      PROXY_SSE_KEEPALIVE: "0.1",
      PROXY_QUEUE_TIMEOUT: "0.5",
    });
    const first = await postRaw(gate, "gap=forever@1");
    await first.nextEvent();
    const late = post(gate.url, gate.key, "");
    const streams = [await postRaw(gate, ""), await postRaw(gate, "", "/v1/messages")] as const;
    for (const [second, begin] of [
      [streams[0], "data: {"],
      [streams[1], "event: error\ndata: {"],
    ] as const) {
      const text = await second.text();
      expect(text).toContain(begin);
      expect(text).toContain('"code":"queue_timeout"');
      expect(await second.ended()).not.toBe("complete");
    }
    const { status, headers } = await late;
    expect([status, headers.get("retry-after")]).toEqual([503, "5"]);
    expect(await (await late).json()).toMatchObject({ error: { code: "queue_timeout" } });
    expect(backend.requests()).toHaveLength(1);
    first.close();
    await pollUntil(async () => (await post(gate.url, gate.key, "")).status === 200);
  });

  test("makes room in a full queue over all processes", async () => {
    const places = { PROXY_MAX_CONCURRENCY: "1", PROXY_QUEUE_SIZE: "8" };
    const program = await startProgramWithKey(backend.url, { PROCESSES: "2", ...places });
    const { key, admin } = program;
    const { key: other, id: otherId } = await admin.createKey("other");
    const client = new AbortController();
    const first = post(program.url, key, "slow-head=forever", client.signal).catch(() => undefined);
    await pollUntil(() => backend.requests().length === 1);
    const many = Array.from({ length: 8 }, () => post(program.url, key, ""));
    await pollUntil(async () => (await listQueued({ admin })).length === 8);
    const few = Array.from({ length: 4 }, () => post(program.url, other, ""));
    await pollUntil(async () => (await listQueued({ admin })).filter(({ key_id }) => key_id === otherId).length === 4);
    client.abort();
    await first;
    expect((await Promise.all(few)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const statuses = (await Promise.all(many)).map(({ status }) => status);
    expect([200, 503].map((status) => statuses.filter((one) => one === status).length)).toEqual([4, 4]);
    await program.stop();
  });

  // Last: metrics ask the backend for its models, which the other tests would see.
  test("shows in the metrics how many requests have a place and wait", async () => {
    await using gate = await start({ PROXY_MAX_CONCURRENCY: "2" });
    const depth = async (): Promise<(number | undefined)[]> => {
      const text = await (await gate.admin.request("GET", "/metrics")).text();
      return ["waiting_requests", "used_places", "places"].map((name) => {
        const [, value] = new RegExp(`^tollgate_queue_${name} (\\d+)$`, "m").exec(text) ?? [];
        return value === undefined ? undefined : Number(value);
      });
    };
    expect(await depth()).toEqual([0, 0, 2]);
    const running = await Promise.all([postRaw(gate, "gap=forever@1"), postRaw(gate, "gap=forever@1")]);
    await Promise.all(running.map((client) => client.nextEvent()));
    const waiting = post(gate.url, gate.key, "");
    await pollUntil(async () => (await depth()).join() === "1,2,2");
    for (const client of running) client.reset();
    expect((await waiting).status).toBe(200);
    await pollUntil(async () => (await depth()).join() === "0,0,2");
  });
});
