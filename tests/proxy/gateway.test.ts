import { describe, expect, test } from "bun:test";
import { createLog } from "../../src/log/log.ts";
import { HeldBytes } from "../../src/proxy/request/body-budget-and-pace.ts";
import { createProxy } from "../../src/proxy/gateway.ts";
import type { ProxyDeps } from "../../src/proxy/life-of-request.ts";
import { noRules } from "../../src/store/keys/rules.ts";
import { startQueue } from "../support/local-places.ts";
import { noEngines, rewriteRules, rewritingOf } from "../support/rewrite-rules.ts";
import type { LimitName } from "../../src/domain/keys.ts";
import type { RequestRecord } from "../../src/domain/requests.ts";

const noTimeout = { beginWait: () => {}, endWait: () => {}, clear: () => {} };

interface Harness {
  /** Sends a request with the key. */
  send(method: string, path: string, body?: string): Promise<Response>;
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
function proxyWith(upstream: () => Response, more: Partial<ProxyDeps> = {}): Harness {
  const events: string[] = [];
  const finished: RequestRecord[] = [];
  const proxy = createProxy({
    config: proxyConfig,
    backendModels: { findEntry: () => undefined, requestEnded: () => {} },
    rewriting: rewritingOf(rewriteRules({ servedModel: "Family", reasoningModel: "Family", vendorPrefixes: [] })),
    forwards: {
      get: () => async () => {
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
      },
    },
    engines: noEngines,
    findKey: () => ({ id: 1, rules: null }),
    seeUser: () => ({ id: 1, isActive: true }),
    isSigned: () => false,
    saltOf: (text) => text,
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
    heldBytes: new HeldBytes(1_000_000, 1_000_000, () => performance.now()),
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
    send: (method, path, body) =>
      proxy.handle(
        new Request(`http://gate.example${path}`, {
          method,
          headers: { host: "gate.example", "x-api-key": "k", "content-type": "application/json" },
          ...(body !== undefined && { body }),
        }),
      ),
    events,
    finished,
  };
}

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
            at: 0,
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
