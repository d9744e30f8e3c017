import { describe, expect, test } from "bun:test";
import { createLog } from "../../src/log/log.ts";
import type { UpstreamRequest } from "../../src/proxy/upstream/forward.ts";
import { createHeldBytes } from "../../src/proxy/request/held-bytes.ts";
import { createProxy } from "../../src/proxy/gateway.ts";
import type { ProxyDeps } from "../../src/proxy/life-of-request.ts";
import { noRules } from "../../src/store/keys/rules.ts";
import { passTicks } from "../support/event-loop.ts";
import { forwardsTo } from "../support/forwards.ts";
import { startQueue } from "../support/local-places.ts";
import { noEngines, rewriteRules, rewritingOf } from "../support/rewrite-rules.ts";
import type { LimitName } from "../../src/domain/keys.ts";
import type { RequestRecord } from "../../src/domain/requests.ts";
import { noUsage, type Usage } from "../../src/domain/usage.ts";

const noTimeout = { beginWait: () => {}, endWait: () => {}, clear: () => {} };
const models = '{"object":"list","data":[]}';
const json = { "content-type": "application/json" };

interface Harness {
  /** Sends a request with the key. */
  send(method: string, path: string, body?: string, headers?: Record<string, string>): Promise<Response>;
  /** What the upstream received. */
  calls: UpstreamRequest[];
  /** What happened around a request, in order. */
  events: string[];
  finished: RequestRecord[];
}

const proxyConfig: ProxyDeps["config"] = {
  upstream: { streamReadTimeoutMs: 111, nonStreamReadTimeoutMs: 222 },
  corsOrigins: undefined,
  closedPaths: [],
  contact: undefined,
  maxBodyBytes: 1_000_000,
  sharesOrigin: true,
};

/** The proxy with an upstream that gives this response. */
function proxyWith(
  upstream: () => Response,
  { beforeHead, ...more }: Partial<ProxyDeps> & { beforeHead?: Promise<undefined> } = {},
): Harness {
  const calls: UpstreamRequest[] = [];
  const events: string[] = [];
  const finished: RequestRecord[] = [];
  const proxy = createProxy({
    config: proxyConfig,
    backendModels: { findEntry: () => undefined, requestEnded: () => {} },
    rewriting: rewritingOf(rewriteRules({ servedModel: "Family", reasoningModel: "Family", vendorPrefixes: [] })),
    forwards: forwardsTo(async (call) => {
      calls.push(call);
      await beforeHead;
      const aborter = new AbortController();
      const release = (): void => void events.push("released");
      return {
        response: upstream(),
        readTimeout: noTimeout,
        signal: aborter.signal,
        abort: (reason) => aborter.abort(reason),
        onBodyRead: () => {},
        release,
      };
    }),
    engines: noEngines,
    findKey: () => ({ id: 1, rules: null }),
    readUsed: async () => {
      throw new Error("the key has no limits");
    },
    record: async (event) => {
      events.push("counted");
      return event;
    },
    queue: startQueue(),
    findOwners: () => Promise.reject(new Error("the request is for nothing stored")),
    countOwned: () => Promise.reject(new Error("the request creates nothing")),
    findOwnKey: async () => undefined,
    addInFlight: () => () => {},
    cacheReporters: new Set(),
    observer: { finished: (record) => void finished.push(record) },
    peerAddress: () => undefined,
    clientAddress: () => "192.0.2.7",
    heldBytes: createHeldBytes(1_000_000, 1_000_000, () => performance.now()),
    closeSoon: () => {},
    disableIdleTimeout: () => {
      events.push("idle timeout disabled");
      return () => void events.push("idle timeout restored");
    },
    draining: new AbortController().signal,
    sseKeepaliveMs: 0,
    wall: () => 1_700_000_000_999,
    monotonic: () => performance.now(),
    log: createLog({ level: "error", format: "json", clock: Date.now, write: () => {} }),
    ...more,
  });
  return {
    send: (method, path, body, headers = {}) =>
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
    const { send, calls } = proxyWith(() => Response.json({}));
    await send(method, "/v1/x", body);
    expect(calls[0]?.readTimeoutMs).toBe(readTimeoutMs);
  });
});

test.each([
  ["text/event-stream; charset=utf-8", {}, true],
  ["Text/Event-Stream", { "content-encoding": "gzip" }, true],
  ["text/event-stream", { "content-length": "9" }, true],
  ["application/json", {}, false],
  ["application/json", { "content-encoding": "gzip" }, false],
  ["application/x-ndjson", {}, false],
  ["text/plain", {}, false],
])("a response under %s with %j is reported as streamed: %p", async (type, headers, streamed) => {
  const { send, finished } = proxyWith(
    () => new Response("data: x\n\n", { headers: { ...headers, "content-type": type } }),
  );
  await (await send("POST", "/v1/chat/completions", "{}")).arrayBuffer();
  expect(finished).toMatchObject([{ streamed, outcome: "completed" }]);
});

test("an event stream without its type ends for its client when it is counted", async () => {
  const counted = Promise.withResolvers<Usage>();
  const { send } = proxyWith(
    () => new Response("data: a\n\ndata: [DONE]\n\n", { headers: { "content-type": "text/plain" } }),
    {
      record: () => counted.promise,
    },
  );
  const reader = (await send("POST", "/v1/x", '{"stream":true}')).body?.getReader();
  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("data: a\n\n");
  const next = Promise.resolve(reader?.read());
  await passTicks(10);
  expect(Bun.peek.status(next)).toBe("pending");
  counted.resolve(noUsage);
  expect(Buffer.from((await next)?.value ?? []).toString()).toBe("data: [DONE]\n\n");
});

describe("a request", () => {
  const responses: [string, () => Response][] = [
    ["whole", () => new Response("{}", { headers: { "content-length": "2" } })],
    ["streamed", () => new Response("data: {}\n\n", { headers: { "content-type": "text/event-stream" } })],
    ["empty", () => new Response(null, { status: 204 })],
  ];
  test.each(responses)(
    "keeps the idle timeout off until its %s response has ended, and releases the upstream",
    async (_, upstream) => {
      const { send, events, finished } = proxyWith(upstream);
      await (await send("GET", "/v1/x")).text();
      expect(events).toEqual(["idle timeout disabled", "released", "counted", "idle timeout restored"]);
      expect(finished).toHaveLength(1);
    },
  );

  test("keeps the idle timeout on for a wrong key", async () => {
    const { send, events } = proxyWith(() => Response.json({}), { findKey: () => undefined });
    expect((await send("GET", "/v1/x")).status).toBe(401);
    expect(events).toEqual([]);
  });
});

describe("a request of a key with a limit of tokens", () => {
  const send = (more: Partial<ProxyDeps>, model: string): Promise<Response> => {
    const rules = { ...noRules, tokens_per_day: 1000, allowed_models: ["m"] };
    const { send: sendTo } = proxyWith(() => Response.json({}), { findKey: () => ({ id: 1, rules }), ...more });
    return sendTo("POST", "/v1/chat/completions", JSON.stringify({ model }));
  };
  const remaining = ({ headers }: Response): string | null => headers.get("x-ratelimit-remaining-tokens");

  test.each<[string, LimitName | undefined, number]>([
    ["admitted", undefined, 200],
    ["refused by a limit", "tokens_per_day", 429],
  ])("that is %s costs no read of what is left besides its admission", async (_, refusedBy, status) => {
    let reads = 0;
    const response = await send(
      {
        queue: startQueue({
          admit: async () => ({
            refusedBy,
            waitMs: 0,
            used: () => 400,
            handOver: () => undefined,
            end: () => {},
            cancel: () => {},
          }),
        }),
        readUsed: async () => {
          reads += 1;
          return () => 0;
        },
      },
      "m",
    );
    expect([response.status, remaining(response), reads]).toEqual([status, "600", 0]);
  });

  test.each<[string, ProxyDeps["readUsed"], string | null]>([
    ["responds", async () => () => 300, "700"],
    ["fails", () => Promise.reject(new Error("the disk is full")), null],
    ["hangs", () => new Promise(() => {}), null],
  ])("that fails before its admission gets its error also if the database %s", async (_, readUsed, left) => {
    const response = await send({ readUsed }, "other");
    expect([response.status, remaining(response)]).toEqual([403, left]);
  });
});

describe("the list of models", () => {
  const listed = (status: number) => proxyWith(() => new Response(models, { status, headers: json }));

  test("has the synthetic model's time in seconds", async () => {
    expect(await (await listed(200).send("GET", "/v1/models")).json()).toMatchObject({
      data: [{ id: "Family-nonthinking", created: 1_700_000_000 }],
    });
  });

  test("above 4 MiB passes as it is, and so does one of an unserved family, which is not even held", async () => {
    const long = `{"object":"list","data":[${"{},".repeat(2_000_000)}{}]}`;
    const chunked = () => new Response(new Blob([long]).stream(), { headers: json });
    expect(await (await proxyWith(chunked).send("GET", "/v1/models")).text()).toBe(long);

    let pulled = 0;
    const endless = () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            pulled++;
            controller.enqueue(new Uint8Array(65_536));
          },
        }),
        { headers: json },
      );
    const { send } = proxyWith(endless, { rewriting: rewritingOf(rewriteRules({ vendorPrefixes: [] })) });
    const response = await send("GET", "/v1/models");
    await passTicks();
    expect(pulled).toBeLessThan(10);
    await response.body?.cancel();
  });

  test.each([
    ["GET", 201],
    ["GET", 404],
    ["POST", 200],
  ])("is the backend's own in the response to a %s with %i", async (method, status) => {
    expect(await (await listed(status).send(method, "/v1/models")).text()).toBe(models);
  });
});

test("a response to HEAD counts and has no body, though one is announced", async () => {
  const { send, events } = proxyWith(() => new Response("data: x\n\n", { headers: { "content-length": "9" } }));
  const response = await send("HEAD", "/v1/x");
  expect(response.body).toBeNull();
  expect(response.headers.get("content-length")).toBe("9");
  expect(events).toContain("counted");
});

describe("a stream that has waited for longer than PROXY_SSE_KEEPALIVE", () => {
  /** What the client gets of a response that comes after the first heartbeat, without the heartbeats. */
  async function lateText(upstream: () => Response, path = "/v1/chat/completions"): Promise<[Harness, string]> {
    const late = Promise.withResolvers<undefined>();
    const harness = proxyWith(upstream, { sseKeepaliveMs: 1, beforeHead: late.promise });
    const response = await harness.send("POST", path, '{"stream":true}');
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    late.resolve(undefined);
    const text: string[] = [];
    try {
      for await (const bytes of response.body ?? []) text.push(Buffer.from(bytes).toString());
    } catch {
      text.push("(broken)");
    }
    return [harness, text.join("").replaceAll(/: keepalive\n\n|event: ping\ndata: \{"type":"ping"\}\n\n/g, "")];
  }

  const typed = (type: string, body: BodyInit | null, status = 200): Response =>
    new Response(body, { status, headers: { "content-type": type } });
  const events = "data: a\n\ndata: [DONE]\n\n";

  test.each<[string, () => Response, string, boolean]>([
    ["an event stream", () => typed("text/event-stream", events), events, true],
    ["an event stream without its type", () => typed("text/plain", events), events, false],
    ["JSON", () => typed("application/json", '{\r\n "a": 1\n}'), 'data: {   "a": 1 }\n\ndata: [DONE]\n\n', false],
    ["JSON without its type", () => new Response(Buffer.from(' {"a":1}')), 'data:  {"a":1}\n\ndata: [DONE]\n\n', false],
    [
      "gzipped JSON",
      () => new Response(Bun.gzipSync('{"a":1}'), { headers: { ...json, "content-encoding": "gzip" } }),
      'data: {"a":1}\n\ndata: [DONE]\n\n',
      false,
    ],
  ])("gets %s as events, and it counts", async (_, upstream, expected, streamed) => {
    const [{ events: happened, finished }, text] = await lateText(upstream);
    expect(text).toBe(expected);
    expect(happened).toContain("counted");
    expect(finished).toMatchObject([{ status: 200, outcome: "completed", streamed }]);
  });

  test("gets an error, and no end, if JSON breaks off", async () => {
    let sent = 0;
    const broken = () =>
      new ReadableStream({
        pull(controller) {
          if (sent++ < 100) controller.enqueue(Buffer.alloc(1000, '"'));
          else controller.error(new Error("broken"));
        },
      });
    const [{ events: happened, finished }, text] = await lateText(() => typed("application/json", broken()));
    expect(text).toEndWith('"code":"upstream_unreachable"}}\n\n(broken)');
    expect(text).not.toContain("[DONE]");
    expect(happened).not.toContain("counted");
    expect(finished).toMatchObject([{ status: 200, outcome: "upstream_failed" }]);
  });

  const overloaded = { message: "Too long.", type: "invalid_request_error", code: "context_length_exceeded" };
  test.each<[string, () => Response, number, object]>([
    ["a 204", () => new Response(null, { status: 204 }), 204, { code: "unexpected_response" }],
    ["HTML", () => typed("text/html", "<p>secret</p>"), 200, { code: "unexpected_response" }],
    ["text", () => typed("text/plain", "secret"), 200, {}],
    ["an HTML error", () => typed("text/html", "<p>secret</p>", 502), 502, {}],
    ["an error event stream", () => typed("text/event-stream", events, 500), 500, {}],
    [
      "a JSON error",
      () => Response.json({ error: overloaded }, { status: 400 }),
      400,
      { type: overloaded.type, code: overloaded.code },
    ],
    ["a flat JSON error", () => Response.json(overloaded, { status: 400 }), 400, { type: overloaded.type }],
    ["a long JSON error", () => Response.json({ error: { message: "x".repeat(100_000) } }, { status: 500 }), 500, {}],
  ])("gets an error event that names the status of %s, and it does not count", async (_, upstream, status, error) => {
    for (const path of ["/v1/chat/completions", "/v1/messages"]) {
      const [{ events: happened, finished }, text] = await lateText(upstream, path);
      const begin = path === "/v1/messages" ? "event: error\ndata: " : "data: ";
      expect(text).toStartWith(begin);
      expect(text).toEndWith("\n\n(broken)");
      expect(text).not.toContain("secret");
      expect(text.length).toBeLessThan(1000);
      const body = JSON.parse(text.slice(begin.length, -"(broken)".length)) as { error: { message: string } };
      expect(body).toMatchObject({ error: { type: "api_error", ...error } });
      expect(body.error.message).toContain(`status ${status}`);
      expect(happened).not.toContain("counted");
      const end = { status: 200, outcome: "upstream_failed", code: "unexpected_response", cause: `status_${status}` };
      expect(finished).toMatchObject([end]);
    }
  });

  test("gets the backend's own head if that came in time, and then heartbeats as early", async () => {
    const never = new ReadableStream<Uint8Array>({});
    const { send } = proxyWith(
      () => new Response(never, { status: 201, headers: { "content-type": "text/event-stream" } }),
      {
        sseKeepaliveMs: 20,
      },
    );
    const response = await send("POST", "/v1/chat/completions", '{"stream":true}');
    expect(response.status).toBe(201);
    await response.body?.cancel();
    const late = await proxyWith(() => Response.json({}, { status: 400 }), { sseKeepaliveMs: 60_000 }).send(
      "POST",
      "/v1/x",
      '{"stream":true}',
    );
    expect(late.status).toBe(400);
  });

  test.each<[string, string, string]>([
    ["is no stream", "POST", "{}"],
    ["is no POST", "PUT", '{"stream":true}'],
  ])("gets no heartbeat if it %s", async (_, method, body) => {
    const late = Promise.withResolvers<undefined>();
    const { send } = proxyWith(() => Response.json({}), { sseKeepaliveMs: 1, beforeHead: late.promise });
    const response = send(method, "/v1/x", body);
    await Bun.sleep(10);
    late.resolve(undefined);
    expect(await (await response).text()).toBe("{}");
  });
});

test("both names of the request id are on every response, also instead of the backend's", async () => {
  const headers = { "x-request-id": "theirs", "request-id": "theirs" };
  const { send } = proxyWith(() => new Response("{}", { headers }));
  const asked = { "x-request-id": "mine" };
  for (const path of ["/v1/x", "/nothing"]) {
    const response = await send("POST", path, "{}", asked);
    expect(["x-request-id", "request-id"].map((name) => response.headers.get(name))).toEqual(["mine", "mine"]);
  }
});

test("an error under /v1/messages has the request id in its body, and no other", async () => {
  const { send } = proxyWith(() => Response.json({}), { findKey: () => undefined });
  for (const path of ["/v1/messages", "/v1/messages/count_tokens", "//v1/messages"]) {
    expect(await (await send("POST", path, "{}", { "x-request-id": "mine" })).json()).toMatchObject({
      request_id: "mine",
    });
  }
  expect(await (await send("POST", "/v1/chat/completions", "{}")).json()).not.toHaveProperty("request_id");
});

test.each([
  ["Subagent", "subagent"],
  ["compaction", "compaction"],
  ["", undefined],
  ["two words", undefined],
  ["x".repeat(41), undefined],
  ["<b>", undefined],
])("the class %j of a request is %p in its record", async (given, kept) => {
  const { send, finished } = proxyWith(() => Response.json({}));
  await (await send("POST", "/v1/messages", "{}", { "x-claude-code-request-class": given })).text();
  expect(finished.map(({ requestClass }) => requestClass)).toEqual([kept]);
});
