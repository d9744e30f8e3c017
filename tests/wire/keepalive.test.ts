import { describe, expect, test } from "bun:test";
import { pollUntil } from "../support/poll-until.ts";
import { startSimulator } from "../support/simulator/simulator.ts";
import type { RawClient } from "../support/raw-client.ts";
import { shared } from "../support/shared.ts";
import { startTollgate } from "../support/tollgate.ts";

const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url, PROXY_SSE_KEEPALIVE: "0.1" }));

const comment = ": keepalive\n\n";

const body = { model: "m", stream: true, max_tokens: 4, messages: [{ role: "user", content: "Hi" }] };
const stream = (script: string, headers = {}): Promise<RawClient> =>
  gate.sendRaw("/v1/chat/completions", body, { script, headers });

describe("with PROXY_SSE_KEEPALIVE", () => {
  test("a silent stream gets comments, the first of which also sends the head", async () => {
    const client = await stream("gap=forever@0");
    expect((await client.head()).status).toBe(200);
    expect(await client.nextEvent()).toBe(comment);
    expect(await client.nextEvent()).toBe(comment);
    client.reset();
  });

  test("a head that was kept alive does not tell where the request went", async () => {
    const client = await stream("slow-head=500ms", { "x-tollgate-debug": "1" });
    const names = (await client.head()).headers.map(([name]) => name.toLowerCase());
    expect(names.filter((name) => name.startsWith("x-tollgate"))).toEqual([]);
    expect(await client.ended()).toBe("complete");
    client.close();
  });

  test("comments appear only between events and leave the events unchanged", async () => {
    const client = await stream("gap=1500ms@2");
    expect(await client.ended()).toBe("complete");
    const text = await client.text();
    expect(text.split(comment).length).toBeGreaterThan(2);
    for (const event of text.replaceAll(comment, "").split("\n\n").filter(Boolean)) expect(event).toStartWith("data: ");
    expect(text).toEndWith("data: [DONE]\n\n");
    client.close();
  });

  test("a response that is not an event stream gets no comments", async () => {
    const client = await gate.sendRaw("/v1/files/1", undefined, { script: "body=3MB; split=1MB; gap=400ms@1" });
    expect(await client.ended()).toBe("complete");
    expect(client.bodyBytes()).toBe(3 * 1024 * 1024);
    client.close();
  });
});

describe("a stream that has waited for longer than PROXY_SSE_KEEPALIVE", () => {
  interface Late {
    /** From its status on; `Connection: close` is added. */
    head: string;
    body?: string | Uint8Array;
    breaks?: boolean;
  }

  /** What the client gets of a response that comes after the first heartbeat, without the heartbeats; and what is logged. */
  async function late({ head, body: sent = "", breaks = false }: Late, path = "/v1/chat/completions") {
    const waited = Promise.withResolvers<void>();
    backend.handle(async (_, wire) => {
      await waited.promise;
      wire.write(`HTTP/1.1 ${head}\r\nConnection: close\r\n\r\n`);
      wire.write(sent);
      if (breaks) wire.reset();
      else wire.end();
    });
    const before = await gate.readKey();
    const client = await gate.sendRaw(path, { stream: true });
    const { status, header } = await client.head();
    expect([status, header("content-type")]).toEqual([200, "text/event-stream"]);
    const heartbeat = (await client.nextEvent()) ?? "";
    waited.resolve();
    const text = (await client.text()).replaceAll(heartbeat, "");
    backend.handle(undefined);
    const isWhole = (await client.ended()) === "complete";
    const query = `?request_id=${header("x-request-id")}`;
    const row = await pollUntil(async () => (await gate.admin.listRequests(query))[0]);
    const counted = (await gate.readKey()).total_request_count - before.total_request_count;
    return { text, isWhole, counted, row };
  }

  const typed = (type: string, status = 200): string => `${status} X\r\nContent-Type: ${type}`;
  const events = "data: a\n\ndata: [DONE]\n\n";

  test.each<[string, Late, string, boolean]>([
    ["an event stream", { head: typed("text/event-stream"), body: events }, events, true],
    ["an event stream without its type", { head: typed("text/plain"), body: events }, events, false],
    [
      "JSON",
      { head: typed("application/json"), body: '{\r\n "a": 1\n}' },
      'data: {   "a": 1 }\n\ndata: [DONE]\n\n',
      false,
    ],
    ["JSON without its type", { head: "200 OK", body: ' {"a":1}' }, 'data:  {"a":1}\n\ndata: [DONE]\n\n', false],
    [
      "gzipped JSON",
      { head: `${typed("application/json")}\r\nContent-Encoding: gzip`, body: Bun.gzipSync('{"a":1}') },
      'data: {"a":1}\n\ndata: [DONE]\n\n',
      false,
    ],
    [
      "a gzipped event stream",
      { head: `${typed("text/event-stream")}\r\nContent-Encoding: gzip`, body: Bun.gzipSync(events) },
      events,
      true,
    ],
  ])("gets %s as events, and it counts", async (_, response, expected, streamed) => {
    const { row, ...got } = await late(response);
    expect(got).toEqual({ text: expected, isWhole: true, counted: 1 });
    expect(row).toMatchObject({ status: 200, outcome: "completed", streamed });
  });

  test("gets an error, and no end, if JSON breaks off", async () => {
    const broken = `${typed("application/json")}\r\nContent-Length: 200000`;
    const { text, row, ...got } = await late({ head: broken, body: '"'.repeat(100_000), breaks: true });
    expect(text).toEndWith('"code":"upstream_unreachable"}}\n\n');
    expect(text).not.toContain("[DONE]");
    expect(got).toEqual({ isWhole: false, counted: 0 });
    expect(row).toMatchObject({ status: 200, outcome: "upstream_failed" });
  });

  const overloaded = { message: "Too long.", type: "invalid_request_error", code: "context_length_exceeded" };
  const { type, code } = overloaded;
  const json = (status: number, of: object): Late => ({
    head: typed("application/json", status),
    body: JSON.stringify(of),
  });
  test.each<[string, Late, number, object]>([
    ["a 204", { head: "204 No Content" }, 204, { code: "unexpected_response" }],
    ["HTML", { head: typed("text/html"), body: "<p>secret</p>" }, 200, { code: "unexpected_response" }],
    ["JSON that is empty", { head: typed("application/json") }, 200, { code: "unexpected_response" }],
    ["text", { head: typed("text/plain"), body: "secret" }, 200, {}],
    ["an HTML error", { head: typed("text/html", 502), body: "<p>secret</p>" }, 502, {}],
    ["an error event stream", { head: typed("text/event-stream", 500), body: events }, 500, {}],
    ["a JSON error", json(400, { error: overloaded }), 400, { type, code }],
    ["a flat JSON error", json(400, overloaded), 400, { type }],
    ["a long JSON error", json(500, { error: { message: "x".repeat(100_000) } }), 500, {}],
  ])("gets an error event that names the status of %s, and it does not count", async (_, response, status, error) => {
    for (const path of ["/v1/chat/completions", "/v1/messages"]) {
      const { text, row, ...got } = await late(response, path);
      expect(got).toEqual({ isWhole: false, counted: 0 });
      expect(text).not.toContain("secret");
      expect(text.length).toBeLessThan(1000);
      const [, data = ""] =
        (path === "/v1/messages" ? /^event: error\ndata: (.*)\n\n$/ : /^data: (.*)\n\n$/).exec(text) ?? [];
      expect(JSON.parse(data)).toMatchObject({
        error: { type: "api_error", message: expect.stringContaining(`status ${status}`), ...error },
      });
      const end = { status: 200, outcome: "upstream_failed", code: "unexpected_response", cause: `status_${status}` };
      expect(row).toMatchObject(end);
    }
  });

  test.each<[string, string, object]>([
    ["is no stream", "POST", {}],
    ["is no POST", "PUT", { stream: true }],
  ])("gets no heartbeat if it %s", async (_, method, sent) => {
    const response = await gate.send("/v1/anything", sent, { method, script: "slow-head=500ms; status=404" });
    expect([response.status, await response.text()]).toEqual([404, expect.not.stringContaining("keepalive")]);
  });
});

describe("what is ours in a stream is in the dialect of its path", () => {
  const ping = 'event: ping\ndata: {"type":"ping"}\n\n';
  const data = 'data: {"type":"keepalive"}\n\n';
  const codex = { "user-agent": "codex_exec/0.169.0 (linux)" };

  const texts = { input: "Hi", prompt: "Hi", messages: [{ role: "user", content: "Hi" }] };
  const post = (path: string, headers: Record<string, string>, script: string): Promise<RawClient> =>
    gate.sendRaw(path, { model: "m", stream: true, max_tokens: 4, ...texts }, { script, headers });

  const rows: [string, Record<string, string>, string, string, RegExp, RegExp][] = [
    ["/v1/chat/completions", {}, comment, comment, /^data: \{"error"/, /^data: \{"error"/],
    ["/v1/completions", codex, comment, comment, /^data: \{"error"/, /^data: \{"error"/],
    ["/v1/messages", {}, ping, ping, /^event: error\ndata: /, /^event: error\ndata: /],
    ["/v1/responses", {}, comment, data, /^event: error\ndata: .*"code":"invalid_prompt"/, /^event: response.failed\n/],
    [
      "/v1/responses",
      codex,
      data,
      data,
      /^event: response.failed\n.*"code":"invalid_prompt","message":"The backend responded with status 400: /,
      /^event: response.failed\n.*"code":"server_error"/,
    ],
  ];

  test.concurrent.each(rows)("%s for %j has its heartbeats", async (path, headers, before, after) => {
    const client = await post(path, headers, "slow-head=350ms; gap=350ms@1; gap=350ms@2");
    const text = await client.text();
    expect(await client.ended()).toBe("complete");
    expect(text).toStartWith(before.repeat(2));
    let rest = text;
    while (rest.startsWith(before)) rest = rest.slice(before.length);
    expect(rest).toContain(after);
    // Without them it is the backend's stream: none stands inside an event.
    const events = text.split("\n\n").filter((one) => one !== "" && ![before, after].includes(`${one}\n\n`));
    for (const one of events) expect(one).toMatch(/^(?:event: \S+\n)?data: (?:\{.*\}|\[DONE\])$/);
  });

  test.concurrent.each(rows)("%s for %j has its late errors", async (path, headers, before, after, early, late) => {
    const refused = await post(path, headers, "slow-head=350ms; status=400");
    expect((await refused.text()).replaceAll(before, "")).toMatch(early);
    const isOfCodex = before === data;
    expect((await refused.ended()) === "complete").toBe(isOfCodex);
    const broken = await post(path, headers, "gap=350ms@2; reset@3");
    const last = (await broken.text()).split("\n\n").findLast((one) => one !== "" && `${one}\n\n` !== after);
    expect(last).toMatch(late);
    expect((await broken.ended()) === "complete").toBe(isOfCodex);
  });
});
