import { describe, expect, test } from "bun:test";
import {
  createForward,
  createRunningCalls,
  type Forward,
  type ForwardDeps,
  type UpstreamRequest,
  type UpstreamFetch,
} from "../../../src/proxy/upstream/forward.ts";
import {
  type ConnectTimeout,
  createConnectionPools,
  createConnectTimeout,
} from "../../../src/proxy/upstream/connections.ts";
import { createReadTimeouts } from "../../../src/proxy/upstream/forward.ts";
import { useFakeTime } from "../../support/fake-time.ts";
import { startBlackhole, startBusyBackend } from "../../support/blackhole.ts";

interface Options {
  fetch: UpstreamFetch;
  connectTimeout?: ConnectTimeout;
  baseUrl?: string;
  startReadTimeout?: ForwardDeps["startReadTimeout"];
}

const noConnectTimeout: ConnectTimeout = { watch: () => () => {}, onReceived: () => {} };

function forwardWith({ fetch, baseUrl = "http://up.example", ...options }: Options): Forward {
  const { connectTimeout = noConnectTimeout } = options;
  return createForward({
    baseUrl,
    fetch,
    pool: createConnectionPools(() => 0)(baseUrl),
    connectTimeout,
    startReadTimeout: options.startReadTimeout ?? createReadTimeouts(() => performance.now()),
    running: createRunningCalls({ stopping: new AbortController().signal, onKeyEnded: () => {} }),
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
