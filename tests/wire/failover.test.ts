import { describe, expect, test } from "bun:test";
import { fixedCatalog } from "../../src/config/catalog.ts";
import type { Backend } from "../../src/domain/models.ts";
import type { SimulatedRequest } from "../support/simulator/request.ts";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import { catalogWith } from "../support/catalog.ts";
import { findFreePort } from "../support/free-port.ts";
import { shared } from "../support/shared.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

const nobody = `http://127.0.0.1:${findFreePort()}`;

const second = shared(() => startSimulator());

/** The second backend gets what the first one does not take. */
function startGate(first: string, more: Partial<Backend> = {}): Promise<Tollgate> {
  const backends = [
    { name: "first", url: first, apiKey: "key-of-first", ...more },
    { name: "second", url: second.url, apiKey: "key-of-second", spill: true },
  ];
  const model = { name: "m", servedAs: "Org/M-1", forceStreamUsage: "final" as const };
  return startTollgate({}, { catalog: fixedCatalog(catalogWith(backends, [model])) });
}

const chat = { model: "m", max_tokens: 8, messages: [{ role: "user", content: "Hi" }] };

const post = ({ send }: Tollgate, path: string, body: object | string, headers = {}) =>
  send(`/v1${path}`, body, { headers: { "x-tollgate-debug": "1", ...headers } });

const debugOf = ({ status, headers }: Response): unknown[] => [
  status,
  ...["backend", "sends", "reason"].map((name) => headers.get(`x-tollgate-${name}`)),
];

/** Without the probes. */
const postsTo = (backend: Simulator): SimulatedRequest[] =>
  backend.requests().filter(({ method }) => method === "POST");

describe("a request that the first backend", () => {
  test("cannot get goes to the second with its own key and the model's name there", async () => {
    await using gate = await startGate(nobody);
    second.clear();
    const response = await post(gate, "/chat/completions", chat);
    expect(debugOf(response)).toEqual([200, "second", "1", "failover"]);
    const [got] = postsTo(second);
    expect(got?.header("authorization")).toBe("Bearer key-of-second");
    expect(got?.json()).toMatchObject({ model: "Org/M-1" });
  });

  test("refuses with 429 goes to the second once, and the row says so", async () => {
    using first = startSimulator();
    await using gate = await startGate(first.url);
    first.scriptNext("status=429; header=retry-after: 30");
    const response = await post(gate, "/chat/completions", chat, { "x-request-id": "busy" });
    expect(debugOf(response)).toEqual([200, "second", "2", "failover"]);
    const entry = await gate.waitForLog(({ requestId }) => requestId === "busy");
    expect(entry).toMatchObject({ backend: "second", sends: 2, reason: "failover" });
    // It has asked for a pause, and there is a choice.
    expect(debugOf(await post(gate, "/chat/completions", chat))).toEqual([200, "second", "1", "spill"]);
  });

  test("refuses with 429, as the second does, ends with what the second says", async () => {
    using first = startSimulator();
    await using gate = await startGate(first.url);
    first.scriptNext("status=429; header=retry-after: 30");
    second.scriptNext("status=429; header=retry-after: 7");
    const response = await post(gate, "/chat/completions", chat);
    expect([...debugOf(response), response.headers.get("retry-after")]).toEqual([429, "second", "2", "failover", "7"]);
  });

  test("does not want to tell the usage of is sent there again, once; the second is asked all the same", async () => {
    using first = startSimulator();
    await using gate = await startGate(first.url);
    const content = '{"choices":[{"index":0,"delta":{"content":"a"}}]}';
    first.handle((request, wire) => {
      const isRefused = Buffer.from(request.body()).includes("stream_options");
      const body = isRefused
        ? '{"error":{"message":"stream_options is unknown"}}'
        : `data: ${content}\n\ndata: [DONE]\n\n`;
      const head = isRefused ? "400 No\r\ncontent-type: application/json" : "200 OK\r\ncontent-type: text/event-stream";
      wire.write(`HTTP/1.1 ${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    });
    const send = async (): Promise<unknown[]> => {
      const response = await post(gate, "/chat/completions", { ...chat, stream: true });
      await response.text();
      return debugOf(response);
    };
    expect(await send()).toEqual([200, "first", "2", "load"]);
    expect(await send()).toEqual([200, "first", "1", "session"]);
    await gate.admin.expectOk("PATCH", "/api/backends/first", { draining: true });
    second.clear();
    expect(await send()).toEqual([200, "second", "1", "spill"]);
    expect(postsTo(second)[0]?.json()).toMatchObject({ stream_options: { include_usage: true } });
  });
});

describe("a body of a megabyte", () => {
  const text = "x".repeat(1_000_000);

  test.each(["429", "503"])("that was held comes whole to the second backend after a %s", async (status) => {
    using first = startSimulator();
    await using gate = await startGate(first.url, { retry503: true });
    first.scriptNext(`status=${status}`);
    second.clear();
    const body = JSON.stringify({ ...chat, max_tokens: 1, messages: [{ role: "user", content: text }] });
    expect(debugOf(await post(gate, "/chat/completions", body))).toEqual([200, "second", "2", "failover"]);
    expect(postsTo(second).map((got) => Buffer.from(got.body()).toString())).toEqual([
      body.replace('"m"', '"Org/M-1"'),
    ]);
  });

  const form = (): FormData => {
    const data = new FormData();
    data.set("model", "m");
    data.set("file", new Blob([text]), "a.wav");
    return data;
  };

  test("that is passed on as it comes goes whole to the second backend if the first has no connection", async () => {
    await using gate = await startGate(nobody);
    second.clear();
    expect(debugOf(await post(gate, "/audio/transcriptions", form()))).toEqual([200, "second", "1", "failover"]);
    const [got] = postsTo(second);
    expect(got?.bodyBytes).toBeGreaterThan(text.length);
    expect(Buffer.from(got?.body() ?? []).includes(text)).toBe(true);
  });

  test("that was passed on is not sent again", async () => {
    using first = startSimulator();
    await using gate = await startGate(first.url);
    first.scriptNext("status=429");
    second.clear();
    expect(debugOf(await post(gate, "/audio/transcriptions", form()))).toEqual([429, "first", "1", "load"]);
    expect(postsTo(second)).toEqual([]);
  });
});

describe("a client that leaves ends the request within a second", () => {
  async function leave(gate: Tollgate, backend: Simulator): Promise<void> {
    backend.clear();
    const client = new AbortController();
    const ended = gate
      .send("/v1/chat/completions", chat, { script: "slow-head=forever", signal: client.signal })
      .catch(() => {});
    await backend.waitFor(({ type }) => type === "request");
    const left = performance.now();
    client.abort();
    await ended;
    await backend.waitFor(({ type }) => type === "aborted");
    // A loaded machine is slower.
    expect(performance.now() - left).toBeLessThan(5000);
  }

  test("at the one that it has moved on to", async () => {
    using first = startSimulator();
    await using gate = await startGate(first.url);
    first.handle((_, wire) => void wire.write("HTTP/1.1 429 Busy\r\ncontent-length: 0\r\n\r\n"));
    await leave(gate, second);
    await using other = await startGate(nobody);
    await leave(other, second);
  });
});
