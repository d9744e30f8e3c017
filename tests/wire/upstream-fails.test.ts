import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import type { RawClient } from "../support/raw-client.ts";
import { shared } from "../support/shared.ts";
import { startTollgate } from "../support/tollgate.ts";

const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url }));

const bodies: Record<string, object> = {
  "/v1/chat/completions": { model: "m", stream: true, max_tokens: 8, messages: [{ role: "user", content: "Hi" }] },
  "/v1/completions": { model: "m", stream: true, max_tokens: 8, prompt: "Hi" },
  "/v1/responses": { model: "m", stream: true, max_output_tokens: 8, input: "Hi" },
  "/v1/messages": { model: "m", stream: true, max_tokens: 8, messages: [{ role: "user", content: "Hi" }] },
};

const post = (path: string, script: string, body: object = { model: "m" }): Promise<RawClient> =>
  gate.sendRaw(path, body, { script });

const unreachable = {
  type: "error",
  error: {
    type: "api_error",
    message: "The backend could not be reached, or broke off its response.",
    param: null,
    code: "upstream_unreachable",
  },
};

describe("before its response", () => {
  test.each([
    ["reset-before-head", { cause: "ECONNRESET" }],
    ["close-before-head", { cause: "ECONNRESET" }],
    ["garbage", { cause: "not_http" }],
    ["reset-after-head; body=1000", { cause: "ECONNRESET", receivedBytes: 0 }],
    ["wrong-length=100; body=1000; gap=300ms@1", { cause: "ECONNRESET", receivedBytes: 1000 }],
    ["status=999", { cause: "not_http" }],
    ["status=99", { cause: "not_http" }],
    ["half-head; close-before-head", { cause: "ECONNRESET" }],
    ["wrong-length=100", { cause: "ECONNRESET" }],
  ])("a backend with %s gives 502, and the log names the cause", async (script, logged) => {
    const before = await gate.readKey();
    const client = await post("/v1/embeddings", script, { model: "m", input: "Hi" });
    const head = await client.head();
    expect(head.status).toBe(502);
    expect(head.header("retry-after")).toBeUndefined();
    expect(await client.json()).toEqual(unreachable);
    expect((await gate.readKey()).total_request_count).toBe(before.total_request_count);
    const entry = await gate.waitForLog(({ requestId }) => requestId === head.header("x-request-id"));
    expect(entry).toMatchObject({ code: "upstream_unreachable", ...logged });
    client.close();
  });

  test.each([
    ["http://127.0.0.1:1", "ECONNREFUSED"],
    ["http://does-not-exist.invalid", "ENOTFOUND"],
    ["http://[::1]:1", "ECONNREFUSED"],
  ])("a missing backend at %s gives 502, and the log names the cause %s", async (url, cause) => {
    await using lonely = await startTollgate({ PROXY_UPSTREAM_URL: url });
    const response = await lonely.send("/v1/models");
    expect([response.status, response.headers.get("retry-after")]).toEqual([502, "1"]);
    const text = await response.text();
    expect(JSON.parse(text)).toEqual(unreachable);
    expect(text).not.toContain("127.0.0.1");
    expect(text).not.toContain(cause);
    expect(await lonely.waitForLog(({ message }) => message === "Request ended")).toMatchObject({
      status: 502,
      outcome: "upstream_failed",
      code: "upstream_unreachable",
      cause,
    });
  });
});

describe("the connection of a request", () => {
  const send = (method: string, path = "/v1/embeddings"): Promise<Response> =>
    gate.send(path, ["POST", "PUT"].includes(method) ? { model: "m", input: "a" } : undefined, { method });

  /** The number of the connection that the request came to the backend over. */
  async function connectionOf(...request: Parameters<typeof send>): Promise<number> {
    backend.clear();
    await (await send(...request)).text();
    return (await backend.waitFor(({ type }) => type === "request")).connection;
  }

  test.each(["POST", "PATCH", "DELETE"])(
    "of a %s is reset before the response, though it is a pooled one: the request is not sent again",
    async (method) => {
      await (await send("POST")).text();
      backend.clear();
      backend.scriptNext("reset-before-head");
      const response = await send(method);
      expect([response.status, response.headers.get("retry-after")]).toEqual([502, null]);
      expect(await response.json()).toEqual(unreachable);
      expect(backend.requests()).toHaveLength(1);
    },
  );

  test("of a POST is new while the pooled one may be closing; that of a GET never is", async () => {
    const pooled = await connectionOf("POST");
    expect(await connectionOf("POST")).toBe(pooled);
    // The clients are idle.
    await Bun.sleep(1_600);
    expect(await connectionOf("POST")).not.toBe(pooled);
    expect(await connectionOf("GET", "/v1/models")).toBe(pooled);
    expect(await connectionOf("POST")).toBe(pooled);
  });

  test("of an upload is its own, because it can be sent only once", async () => {
    const pooled = await connectionOf("POST");
    expect(await connectionOf("POST")).toBe(pooled);
    expect(await connectionOf("PUT", "/v1/files/1")).not.toBe(pooled);
    expect(await connectionOf("POST")).toBe(pooled);
  });
});

describe("inside its response", () => {
  describe.each(Object.keys(bodies))("on %s", (path) => {
    test.each(["die@2", "reset@2", "die-mid-frame@3", "reset-mid-frame@3"])(
      "a stream with %s ends with an error event and a broken connection",
      async (script) => {
        const before = await gate.readKey();
        // Paced: Bun drops bytes that arrive together with the break (1.4.5).
        const client = await post(path, `gap=300ms@1; ${script}`, bodies[path]);
        expect((await client.head()).status).toBe(200);
        expect(await client.ended()).not.toBe("complete");
        const events = (await client.text()).split("\n\n").filter((event) => event.trim() !== "");
        const last = events.at(-1) ?? "";
        for (const event of events) expect(() => JSON.parse(/^data: (.*)$/m.exec(event)?.[1] ?? "")).not.toThrow();
        const data = JSON.parse(/^data: (.*)$/m.exec(last)?.[1] ?? "null");
        const { error } = unreachable;
        if (path === "/v1/messages") {
          expect(last).toStartWith("event: error\n");
          expect(data).toEqual({ type: "error", error, request_id: expect.any(String) });
        } else if (path === "/v1/responses") {
          expect(last).toStartWith("event: response.failed\n");
          const response = { status: "failed", error: { code: "server_error", message: error.message } };
          expect(data).toMatchObject({ type: "response.failed", response, error });
        } else {
          expect(data).toEqual({ error });
        }
        expect(await client.text()).not.toContain("[DONE]");
        expect((await gate.readKey()).total_request_count).toBe(before.total_request_count);
      },
    );
  });

  test.each(["reset-after-head", "die-mid-frame@1", "gap=forever@0"])(
    "a stream that breaks or stalls before its first event, with %s, is a 502 or 504, although its head had arrived",
    async (script) => {
      const timeout = script.startsWith("gap") ? "0.3" : "60";
      await using hasty = await startTollgate({ PROXY_UPSTREAM_URL: backend.url, PROXY_STREAM_READ_TIMEOUT: timeout });
      for (const [path, body] of Object.entries(bodies)) {
        const response = await hasty.send(path, body, { script });
        const status = script.startsWith("gap") ? 504 : 502;
        expect(response.status).toBe(status);
        expect(response.headers.get("content-type")).toStartWith("application/json");
        expect((await hasty.waitForLog((entry) => entry["path"] === path))["status"]).toBe(status);
      }
      expect((await hasty.readKey()).total_request_count).toBe(0);
    },
  );

  test("a body that is not an event stream breaks without an error event", async () => {
    const client = await post("/v1/files", "body=5MB; split=1MB; gap=300ms@1; reset@2");
    expect((await client.head()).status).toBe(200);
    expect(await client.ended()).not.toBe("complete");
    expect(await client.text()).not.toContain('"error"');
  });

  test("a failure is logged with the key's id and never the key", async () => {
    const client = await post("/v1/chat/completions?secret=1", "gap=300ms@1; die@2", bodies["/v1/chat/completions"]);
    await client.ended();
    const entry = await gate.waitForLog(
      ({ path, outcome }) => path === "/v1/chat/completions" && outcome === "upstream_failed",
    );
    expect(entry).toMatchObject({
      method: "POST",
      status: 200,
      keyId: gate.keyId,
      code: "upstream_unreachable",
      cause: "ECONNRESET",
    });
    expect(entry["receivedBytes"]).toBeGreaterThan(0);
    expect(JSON.stringify(gate.log)).not.toContain(gate.key);
    expect(JSON.stringify(gate.log)).not.toContain("secret=1");
  });
});
