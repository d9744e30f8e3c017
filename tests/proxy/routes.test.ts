import { describe, expect, test } from "bun:test";
import { createLog } from "../../src/log/log.ts";
import type { UpstreamRequest } from "../../src/proxy/upstream/forward.ts";
import type { RequestRecord } from "../../src/domain.ts";
import { createReadTimeouts } from "../../src/proxy/upstream/read-timeout.ts";
import { createProxy, type ProxyDeps } from "../../src/proxy/routes.ts";
import { rewriteRules } from "../support/rewrite-rules.ts";

const stillDeadline = { beginWait: () => {}, endWait: () => {}, clear: () => {} };
const models = '{"object":"list","data":[]}';
const json = { "content-type": "application/json" };

interface Bench {
  /** Sends a request with the key. */
  ask(method: string, path: string, body?: string, headers?: Record<string, string>): Promise<Response>;
  /** What the upstream was asked. */
  calls: UpstreamRequest[];
  /** What happened around a request, in order. */
  events: string[];
  finished: RequestRecord[];
}

/** The proxy with an upstream that gives this answer. */
function benchWith(answer: () => Response, more: Partial<ProxyDeps> = {}): Bench {
  const calls: UpstreamRequest[] = [];
  const events: string[] = [];
  const finished: RequestRecord[] = [];
  const proxy = createProxy({
    config: {
      upstream: {
        baseUrl: "http://up.example",
        apiKey: undefined,
        streamReadTimeoutMs: 111,
        nonStreamReadTimeoutMs: 222,
      },
      rewrite: { ...rewriteRules({ servedModel: "Family", reasoningModel: "Family" }), vendorPrefixes: [] },
      corsOrigins: undefined,
    },
    forward: async (call) => {
      calls.push(call);
      const release = (): void => void events.push("released");
      return {
        response: answer(),
        readTimeout: stillDeadline,
        signal: new AbortController().signal,
        abort: () => {},
        release,
      };
    },
    findKey: () => ({ id: 1 }),
    record: async () => void events.push("counted"),
    observer: { started: () => {}, finished: (record) => void finished.push(record) },
    clientAddress: () => undefined,
    disableIdleTimeout: () => {
      events.push("held open");
      return () => void events.push("put back");
    },
    isStopping: () => false,
    startReadTimeout: createReadTimeouts(() => performance.now()),
    sseKeepaliveMs: 0,
    clock: () => 1_700_000_000_999,
    monotonic: () => performance.now(),
    log: createLog({ level: "error", format: "json", clock: Date.now, write: () => {} }),
    ...more,
  });
  return {
    ask: (method, path, body, headers = {}) =>
      proxy.handle(
        new Request(`http://gate.example${path}`, {
          method,
          headers: { host: "gate.example", "x-api-key": "k", ...json, ...headers },
          ...(body !== undefined && { body }),
        }),
      ),
    calls,
    events,
    finished,
  };
}

describe("the read timeout", () => {
  test.each([
    ["POST", '{"stream":true}', 111],
    ["POST", '{"stream":false}', 222],
    ["POST", "{}", 222],
    ["POST", "no JSON", 222],
    ["PUT", '{"stream":true}', 222],
    ["GET", undefined, 222],
  ])("of a %s of %s is %i ms", async (method, body, readTimeoutMs) => {
    const { ask, calls } = benchWith(() => Response.json({}));
    await ask(method, "/v1/x", body);
    expect(calls[0]?.readTimeoutMs).toBe(readTimeoutMs);
  });
});

describe("a request", () => {
  const answers: [string, () => Response][] = [
    ["whole", () => new Response("{}", { headers: { "content-length": "2" } })],
    ["streamed", () => new Response("data: {}\n\n", { headers: { "content-type": "text/event-stream" } })],
    ["empty", () => new Response(null, { status: 204 })],
  ];
  test.each(answers)("is held open until its %s answer has ended, and lets go of the upstream", async (_, answer) => {
    const { ask, events, finished } = benchWith(answer);
    await (await ask("GET", "/v1/x")).text();
    expect(events).toEqual(["held open", "released", "counted", "put back"]);
    expect(finished).toHaveLength(1);
  });

  test("is not held open for a key that is wrong", async () => {
    const { ask, events } = benchWith(() => Response.json({}), { findKey: () => undefined });
    expect((await ask("GET", "/v1/x")).status).toBe(401);
    expect(events).toEqual([]);
  });

  test("that comes in while the server stops never reaches the upstream", async () => {
    const { ask, calls } = benchWith(() => Response.json({}), { isStopping: () => true });
    const response = await ask("GET", "/v1/x");
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(calls).toEqual([]);
  });
});

describe("the list of models", () => {
  const listed = (status: number) => benchWith(() => new Response(models, { status, headers: json }));

  test("has the synthetic model's time in seconds", async () => {
    expect(await (await listed(200).ask("GET", "/v1/models")).json()).toMatchObject({
      data: [{ id: "Family-nonthinking", created: 1_700_000_000 }],
    });
  });

  test.each([
    ["GET", 201],
    ["GET", 404],
    ["POST", 200],
  ])("is the backend's own in the answer to a %s with %i", async (method, status) => {
    expect(await (await listed(status).ask(method, "/v1/models")).text()).toBe(models);
  });
});

test("an answer to HEAD is counted though a body is announced, and has none", async () => {
  const { ask, events } = benchWith(() => new Response("data: x\n\n", { headers: { "content-length": "9" } }));
  const response = await ask("HEAD", "/v1/x");
  expect(response.body).toBeNull();
  expect(response.headers.get("content-length")).toBe("9");
  expect(events).toContain("counted");
});

describe("a silent answer", () => {
  const silent = (contentType: string) => () =>
    new Response(new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from("first\n\n")) }), {
      headers: { "content-type": contentType },
    });

  test("gets comments where it is an event stream", async () => {
    const { ask } = benchWith(silent("text/event-stream"), { sseKeepaliveMs: 5 });
    const reader = (await ask("GET", "/v1/x")).body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? "").toString()).toBe("first\n\n");
    expect(Buffer.from((await reader?.read())?.value ?? "").toString()).toBe(": keepalive\n\n");
    await reader?.cancel();
  });

  test("gets none where it is anything else", async () => {
    const { ask } = benchWith(silent("application/octet-stream"), { sseKeepaliveMs: 5 });
    const reader = (await ask("GET", "/v1/x")).body?.getReader();
    await reader?.read();
    const second = reader?.read();
    expect(await Promise.race([second, Bun.sleep(50).then(() => "nothing")])).toBe("nothing");
    await reader?.cancel();
  });
});
