import { describe, expect, test } from "bun:test";
import type { BackendSign, Choice } from "../../src/domain/backends.ts";
import type { Backend } from "../../src/domain/models.ts";
import { sendWithFailover } from "../../src/proxy/failover.ts";
import { RequestTracker } from "../../src/proxy/request-tracker.ts";
import { AbortReason, clientLeft, failed, timedOut, unconnected } from "../../src/proxy/upstream/abort-reason.ts";
import type { UpstreamResponse } from "../../src/proxy/upstream/forward.ts";

/** What becomes of one send: a status, with `Retry-After` in seconds, or why there is no head. */
type Taken = number | { status: number; retryAfter: string } | AbortReason;

interface Case {
  /** In the order of the sends; each is at the next of a, b and c. */
  taken: readonly Taken[];
  /** The backends whose 503 is the engine's own. */
  retry503?: readonly string[];
  hasModel?: boolean;
  /** Its body is a stream of which something was read. */
  isRead?: boolean;
  /** How many of a, b and c have a place; 3 if unset. */
  available?: number;
  /** The client leaves when the request moves on. */
  leaves?: boolean;
}

interface Result {
  /** A status, or the cause or outcome of a failure. */
  end: number | string;
  /** What each backend was sent, in order. */
  sent: readonly string[];
  signs: readonly BackendSign[];
  backend: string | undefined;
  /** What it was at whenever it moved on. */
  moving: readonly (string | undefined)[];
  discarded: number;
}

const names = ["a", "b", "c"];
const refused = new AbortReason("upstream_failed", "upstream_unreachable", "ECONNREFUSED", undefined, true);

async function run({
  taken,
  retry503 = [],
  hasModel = false,
  isRead = false,
  available = 3,
  leaves = false,
}: Case): Promise<Result> {
  const sent: string[] = [];
  const signs: BackendSign[] = [];
  const moving: (string | undefined)[] = [];
  let discarded = 0;
  const client = new AbortController();
  const noObserver = {
    addInFlight: () => () => {},
    cacheReporters: new Set<string>(),
    observer: { finished() {} },
    monotonic: () => 0,
  };
  const tracker = new RequestTracker(noObserver, {
    requestId: "r",
    method: "POST",
    path: "/v1/x",
    clientAddress: "",
    clientProgram: undefined,
  });
  const route = {
    backend: "a",
    reason: "load" as Choice["reason"],
    report: (sign: BackendSign) => void signs.push(sign),
    expectation: undefined,
    lastTurn: undefined,
    end() {},
    async moveOn(): Promise<boolean> {
      moving.push(tracker.record.backend);
      if (leaves) client.abort();
      const next = names[names.indexOf(route.backend) + 1];
      if (next === undefined || names.indexOf(next) >= available) return false;
      Object.assign(route, { backend: next, reason: "failover" });
      return true;
    },
  };
  const send = sendWithFailover({
    tracker,
    route,
    backends: () => names.map((name) => ({ name, retry503: retry503.includes(name) }) as Backend),
    hasModel,
    client: client.signal,
    wall: () => Date.UTC(2026, 0, 1),
    canOpenAgain: () => !isRead,
    async sendOnce({ name }) {
      tracker.upstreamRequestSent(name);
      const how = taken[sent.push(name) - 1];
      if (how === undefined) throw new Error("sent too often");
      if (how instanceof AbortReason) throw how;
      const { status, retryAfter } = typeof how === "number" ? { status: how, retryAfter: undefined } : how;
      const headers = retryAfter === undefined ? undefined : { "retry-after": retryAfter };
      const response = new Response(name, { status, ...(headers && { headers }) });
      return { response, release: () => void discarded++ } as unknown as UpstreamResponse;
    },
  });
  const end = await send().then(
    async ({ response }) => {
      expect(await response.text()).toBe(tracker.record.backend ?? "");
      return response.status;
    },
    (error: unknown) => (error instanceof AbortReason ? (error.cause ?? error.outcome) : String(error)),
  );
  return { end, sent, signs, backend: tracker.record.backend, moving, discarded };
}

describe("a request with the choice of three backends", () => {
  test.each<[what: string, Case, end: number | string, sent: string]>([
    ["responds", { taken: [200] }, 200, "a"],
    // No connection was made: one after the other.
    ["refuses the connection", { taken: [refused, 200] }, 200, "a b"],
    ["cannot be reached in time", { taken: [unconnected(), 200] }, 200, "a b"],
    ["refuses the connection, as the next does", { taken: [refused, refused, 200] }, 200, "a b c"],
    ["refuses the connection, as all do", { taken: [refused, refused, refused] }, "ECONNREFUSED", "a b c"],
    ["refuses the connection, and no other is in", { taken: [refused], available: 1 }, "ECONNREFUSED", "a"],
    // It may have been read.
    ["resets the connection", { taken: [failed("ECONNRESET")] }, "ECONNRESET", "a"],
    ["is no HTTP server", { taken: [failed("not_http")] }, "not_http", "a"],
    ["may have accepted a connection", { taken: [timedOut("connect_timeout")] }, "connect_timeout", "a"],
    ["is silent", { taken: [timedOut("first_byte_timeout")] }, "first_byte_timeout", "a"],
    ["is left by the client", { taken: [clientLeft()] }, "client_left", "a"],
    ["refuses the connection, and the next resets it", { taken: [refused, failed("ECONNRESET")] }, "ECONNRESET", "a b"],
    // It refused to work: once more.
    ["is busy", { taken: [429, 200] }, 200, "a b"],
    ["is busy, as the next is", { taken: [429, 429] }, 429, "a b"],
    ["is busy, and the next refuses the connection", { taken: [429, refused, 200] }, 200, "a b c"],
    ["is busy, and no other can be reached", { taken: [429, refused, refused] }, 429, "a b c"],
    ["is busy, and no other is in", { taken: [429], available: 1 }, 429, "a"],
    ["is busy, and the next fails", { taken: [429, 500] }, 500, "a b"],
    ["is busy, and the next resets the connection", { taken: [429, failed("ECONNRESET")] }, "ECONNRESET", "a b"],
    ["refuses the connection, and the next is busy", { taken: [refused, 429, 200] }, 200, "a b c"],
    ["responds with 503", { taken: [503] }, 503, "a"],
    ["responds with a 503 of its engine", { taken: [503, 200], retry503: ["a"] }, 200, "a b"],
    ["responds with a 503 of its engine, the next too", { taken: [503, 503], retry503: ["a", "b"] }, 503, "a b"],
    ["responds with 500", { taken: [500] }, 500, "a"],
    ["responds with 502", { taken: [502], retry503: names }, 502, "a"],
    ["responds with 504", { taken: [504], retry503: names }, 504, "a"],
    ["responds with 400", { taken: [400] }, 400, "a"],
    // A body that comes from the client as it is sent.
    ["is busy when it gets an upload", { taken: [429], isRead: true }, 429, "a"],
    ["refuses an upload that was read", { taken: [refused], isRead: true }, "ECONNREFUSED", "a"],
    ["refuses an upload", { taken: [refused, 200] }, 200, "a b"],
    // The client leaves in between: nothing more is sent.
    ["refuses the connection, and the client leaves", { taken: [refused], leaves: true }, "client_left", "a"],
    ["is busy, and the client leaves", { taken: [429], leaves: true }, "client_left", "a"],
  ])("that %s", async (_, how, end, sent) => {
    const result = await run(how);
    expect(result).toMatchObject({ end, sent: sent.split(" ") });
    const isOwnAnswer = typeof end === "number";
    // The response that the client gets is the only one that is kept.
    const heads = how.taken.slice(0, result.sent.length).filter((one) => !(one instanceof AbortReason)).length;
    expect(result.discarded).toBe(heads - (isOwnAnswer ? 1 : 0));
  });

  test("is named with the backend whose response the client gets", async () => {
    expect((await run({ taken: [429, 200] })).backend).toBe("b");
    expect((await run({ taken: [429, refused, refused] })).backend).toBe("a");
  });

  test("is at none while it moves on, and at the one that it was at if there is no other", async () => {
    expect(await run({ taken: [refused, refused], available: 2 })).toMatchObject({
      moving: [undefined, undefined],
      backend: "b",
      end: "ECONNREFUSED",
    });
  });

  const responded: BackendSign = { kind: "responded" };
  const busy = (retryAfterMs?: number): BackendSign => ({ kind: "busy", retryAfterMs });
  const failure = (status: number, retryAfterMs?: number): BackendSign => ({ kind: "failed", status, retryAfterMs });
  const soon = "Thu, 01 Jan 2026 00:00:09 GMT";
  const past = "Mon, 01 Jan 2001 00:00:00 GMT";

  test.each<[what: string, taken: readonly Taken[], signs: readonly BackendSign[]]>([
    ["200", [200], [responded]],
    ["400", [400], [responded]],
    ["404", [404], [responded]],
    ["500", [500], [failure(500)]],
    ["501", [501], [responded]],
    ["502", [502], [failure(502)]],
    ["503, for 7 seconds", [{ status: 503, retryAfter: "7" }], [failure(503, 7000)]],
    ["429, not for how long", [{ status: 429, retryAfter: "soon" }, 200], [busy(), responded]],
    ["429, for 9 seconds by its date", [{ status: 429, retryAfter: soon }, 200], [busy(9000), responded]],
    ["429, until a time that is over", [{ status: 429, retryAfter: past }, 200], [busy(0), responded]],
    ["a refused connection", [refused, 200], [{ kind: "unreachable" }, responded]],
    ["no connection in time", [timedOut("connect_timeout")], [{ kind: "unreachable" }]],
    ["a reset connection", [failed("ECONNRESET")], [failure(502)]],
    ["a connection that breaks the rules of TLS", [failed("EPROTO")], [failure(502)]],
    ["what is no HTTP server", [failed("not_http")], [failure(502)]],
    ["silence", [timedOut("first_byte_timeout")], [failure(504)]],
    ["a failure of this machine", [failed("EMFILE")], []],
    ["a client that leaves", [clientLeft()], []],
  ])("tells of %s", async (_, taken, signs) => {
    expect((await run({ taken })).signs).toEqual(signs);
  });

  test("tells of a model that a backend should have, and has not", async () => {
    expect((await run({ taken: [404], hasModel: true })).signs).toEqual([failure(404)]);
  });
});
