import { describe, expect, test } from "bun:test";
import {
  createForward,
  createRunningCalls,
  type RunningCallsDeps,
  type Forward,
  type ForwardDeps,
  type UpstreamRequest,
  type UpstreamFetch,
} from "../../../src/proxy/upstream/forward.ts";
import { type ConnectTimeout, createConnectTimeout } from "../../../src/proxy/upstream/connect-timeout.ts";
import { createConnectionPools } from "../../../src/proxy/upstream/connection-pool.ts";
import { createReadTimeouts } from "../../../src/proxy/upstream/read-timeout.ts";
import { useFakeTime } from "../../support/fake-time.ts";
import { startBlackhole, startBusyBackend } from "../../support/blackhole.ts";

interface Options {
  fetch: UpstreamFetch;
  connectTimeout?: ConnectTimeout;
  baseUrl?: string;
  stopping?: AbortSignal;
  monotonic?: () => number;
  onKeyEnded?: RunningCallsDeps["onKeyEnded"];
  startReadTimeout?: ForwardDeps["startReadTimeout"];
}

const noConnectTimeout: ConnectTimeout = { watch: () => () => {}, onReceived: () => {} };

function forwardWith({ fetch, baseUrl = "http://up.example", ...options }: Options): Forward {
  const { connectTimeout = noConnectTimeout, stopping, monotonic = () => 0 } = options;
  return createForward({
    baseUrl,
    fetch,
    pool: createConnectionPools(monotonic)(baseUrl),
    connectTimeout,
    startReadTimeout: options.startReadTimeout ?? createReadTimeouts(() => performance.now()),
    running: createRunningCalls({
      stopping: stopping ?? new AbortController().signal,
      onKeyEnded: options.onKeyEnded ?? (() => {}),
    }),
  });
}

const call = (more: Partial<UpstreamRequest> = {}): UpstreamRequest => ({
  keyId: 1,
  startedAt: 0,
  method: "POST",
  pathAndQuery: "/v1/x",
  headers: new Headers(),
  body: "{}",
  readTimeoutMs: 20_000,
  client: new AbortController().signal,
  onReceived: () => {},
  ...more,
});

/** Answers only once it is aborted, as a silent backend would. */
const silent: UpstreamFetch = (_, { signal }) =>
  new Promise((__, reject) => {
    const fail = (): void => reject(signal?.reason as Error);
    if (signal?.aborted === true) fail();
    signal?.addEventListener("abort", fail);
  });

describe("a key that is revoked", () => {
  const harness = () => {
    let end = (_keyId: number, _begunUntil: number): void => {};
    const forward = forwardWith({
      fetch: silent,
      onKeyEnded: (listener) => {
        end = listener;
      },
    });
    return { forward, end: (keyId: number, begunUntil: number) => end(keyId, begunUntil) };
  };

  test("ends its own running calls, and no others", async () => {
    const { forward, end } = harness();
    const [own, other] = [forward(call({ keyId: 7 })), forward(call({ keyId: 8 }))];
    end(7, 0);
    await expect(own).rejects.toMatchObject({ outcome: "revoked", code: "key_revoked" });
    end(8, 0);
    await expect(other).rejects.toMatchObject({ outcome: "revoked" });
  });

  test("ends a request that was let in before and is sent after it, and none that came later", async () => {
    const { forward, end } = harness();
    end(7, 50);
    end(7, 40);
    await expect(forward(call({ keyId: 7, startedAt: 50 }))).rejects.toMatchObject({ outcome: "revoked" });
    const later = forward(call({ keyId: 7, startedAt: 51 }));
    end(7, 50);
    expect(await Promise.race([later, Bun.sleep(5)])).toBeUndefined();
    end(7, 51);
    await expect(later).rejects.toMatchObject({ outcome: "revoked" });
  });
});

describe("a call", () => {
  test.each([
    ["http://up.example", "@evil.example/v1/x"],
    ["http://up.example", ".evil.example/v1/x"],
    ["http://up.example", "/v1/../x"],
    ["http://up.example/team", "/v1/../../v1/x"],
    ["http://up.example/team", "/v1x"],
  ])("below %s never goes to %s, whoever let that pass", async (baseUrl, pathAndQuery) => {
    const asked: string[] = [];
    const fetch: UpstreamFetch = async (url) => {
      asked.push(url);
      return new Response();
    };
    await expect(forwardWith({ baseUrl, fetch })(call({ pathAndQuery }))).rejects.toThrow("outside");
    expect(asked).toEqual([]);
  });

  test("of a client that has left already ends at once", async () => {
    const forward = forwardWith({ fetch: silent });
    await expect(forward(call({ client: AbortSignal.abort() }))).rejects.toMatchObject({ outcome: "client_left" });
  });

  test("that comes behind the stop ends at once", async () => {
    const forward = forwardWith({ fetch: silent, stopping: AbortSignal.abort() });
    await expect(forward(call())).rejects.toMatchObject({ code: "shutting_down" });
  });
});

describe("the pool of connections", () => {
  /** Whether each call may use it: the first is a POST, the others follow after the times given. */
  async function usesOfPool(idleMs: number, ...calls: Partial<UpstreamRequest>[]): Promise<unknown[]> {
    let now = 0;
    const uses: unknown[] = [];
    const fetch: UpstreamFetch = async (_, { keepalive }) => {
      uses.push(keepalive);
      return new Response();
    };
    const forward = forwardWith({ fetch, monotonic: () => now });
    await forward(call());
    for (const more of calls) {
      now += idleMs;
      await forward(call(more));
    }
    return uses.slice(1);
  }

  test("is always for what the runtime repeats by itself", async () => {
    const methods = ["GET", "HEAD", "OPTIONS", "PUT"].map((method) => ({ method, body: null }));
    expect(await usesOfPool(2_000, ...methods)).toEqual([true, true, true, true]);
  });

  test("gets a connection back at the end of the body, and from HEAD at once", async () => {
    let now = 0;
    const uses: unknown[] = [];
    const fetch: UpstreamFetch = async (_, { keepalive }) => {
      uses.push(keepalive);
      return new Response("whole");
    };
    const forward = forwardWith({ fetch, monotonic: () => now });
    const { onBodyRead } = await forward(call());
    onBodyRead(Buffer.from("whole"));
    now = 2_000;
    // The first connection is in use, so this one is new.
    await forward(call());
    onBodyRead(undefined);
    now = 4_000;
    await forward(call());
    await forward(call({ method: "HEAD", body: null }));
    now = 6_000;
    await forward(call());
    expect(uses).toEqual([true, true, false, true, false]);
  });

  test("is never for a DELETE, which the runtime would repeat, or for a stream, which can be sent only once", async () => {
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({ start: (controller) => controller.close() });
    expect(await usesOfPool(0, { method: "DELETE", body: null }, { body })).toEqual([false, false]);
  });
});

test("heads and parts of bodies are reported as signs of life, and their bytes are counted", async () => {
  let received = 0;
  let bytes = 0;
  const forward = forwardWith({
    fetch: async () => new Response("whole"),
    connectTimeout: { ...noConnectTimeout, onReceived: () => void received++ },
  });
  const { onBodyRead } = await forward(call({ onReceived: (count) => (bytes += count) }));
  expect([received, bytes]).toEqual([1, 0]);
  onBodyRead(Buffer.from("who"));
  onBodyRead(Buffer.from("le"));
  onBodyRead(undefined);
  expect([received, bytes]).toEqual([3, 5]);
});

describe("an upload", () => {
  const { now, pass } = useFakeTime();

  /** Sends a body that goes on for as long as its client does, to a backend that reads all of it. */
  function startUpload(respond: UpstreamFetch) {
    let client: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => void (client = controller),
    });
    const forward = forwardWith({
      startReadTimeout: createReadTimeouts(now),
      fetch(url, init) {
        void new Response(init.body as ReadableStream).bytes().catch(() => {});
        return respond(url, init);
      },
    });
    const responded = forward(call({ body, readTimeoutMs: 1000 }));
    responded.catch(() => {});
    return { responded, send: (): void => client?.enqueue(Buffer.from("x")) };
  }

  test("that makes no progress for a minute is given up as a held body is", async () => {
    const { responded, send } = startUpload(silent);
    for (let sent = 0; sent < 5; sent++) {
      await pass(59_000);
      send();
    }
    await pass(59_999);
    expect(Bun.peek.status(responded)).toBe("pending");
    await pass(1);
    await expect(responded).rejects.toMatchObject({ outcome: "client_left", code: "request_timeout" });
  });

  test("that makes no progress ends a response that has begun", async () => {
    const { responded } = startUpload(async () => new Response("early"));
    const { signal } = await responded;
    await pass(60_000);
    expect(signal.reason).toMatchObject({ outcome: "client_left", code: "request_timeout" });
  });

  test("has no limit once its response has ended", async () => {
    const { responded } = startUpload(async () => new Response("early"));
    const { signal, release } = await responded;
    release();
    await pass(60_000);
    expect(signal.aborted).toBe(false);
  });
});

describe("the connect timeout of an upload", () => {
  const upload = (): Partial<UpstreamRequest> => ({
    body: new ReadableStream<Uint8Array<ArrayBuffer>>({
      start(controller) {
        controller.enqueue(Buffer.from("x"));
        controller.close();
      },
    }),
  });

  /** The connections cannot be counted, and nothing else is accepted. */
  const forwardTo = (baseUrl: string): Forward =>
    forwardWith({
      baseUrl,
      fetch,
      connectTimeout: createConnectTimeout({
        connect: () => new Promise(() => {}),
        countConnecting: async () => undefined,
        countOthers: () => 0,
        limitMs: 1_500,
        monotonic: () => performance.now(),
      }),
    });

  test("comes while nothing of it is sent", async () => {
    using blackhole = await startBlackhole();
    await expect(forwardTo(blackhole.url)(call(upload()))).rejects.toMatchObject({ code: "upstream_timeout" });
  });

  test("ends with the first bytes that are sent", async () => {
    using busy = startBusyBackend();
    const responded = forwardTo(busy.url)(call(upload()));
    // The backend works on it.
    await Bun.sleep(3_000);
    busy.respond();
    expect((await responded).response.status).toBe(200);
  });
});
