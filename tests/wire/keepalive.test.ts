import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import type { RawClient } from "../support/raw-client.ts";
import { shared } from "../support/shared.ts";
import { startTollgate } from "../support/tollgate.ts";

const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url, PROXY_SSE_KEEPALIVE: "0.1" }));

/** Says that it sends JSON, after a while, and sends nothing. */
function startEmptyBackend(): Disposable & { url: string } {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch() {
      // Plays a backend that is slow.
      await Bun.sleep(300);
      const body = new ReadableStream({ pull: (controller) => controller.close() }, { highWaterMark: 0 });
      return new Response(body, { headers: { "content-type": "application/json" } });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.dispose]: () => void server.stop(true) };
}

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

  test("a stream whose backend sends no head gets them too, and a later error is an event", async () => {
    const client = await stream("slow-head=500ms; status=400");
    expect((await client.head()).status).toBe(200);
    const text = await client.text();
    expect(text.replaceAll(comment, "")).toMatch(/^data: .*"The backend responded with status 400: .*\n\n$/);
    expect(text).toStartWith(comment.repeat(2));
    expect(await client.ended()).not.toBe("complete");
    const logged = { status: 200, outcome: "upstream_failed", code: "unexpected_response", cause: "status_400" };
    expect(await gate.waitForLog(({ cause }) => cause === "status_400")).toMatchObject(logged);
  });

  test.each(["/v1/chat/completions", "/v1/messages"])(
    "an empty response to a stream of %s that was kept alive is an error, and no whole stream without text",
    async (path) => {
      using empty = startEmptyBackend();
      await using kept = await startTollgate({ PROXY_UPSTREAM_URL: empty.url, PROXY_SSE_KEEPALIVE: "0.1" });
      const client = await kept.sendRaw(path, { model: "m", stream: true, messages: [] });
      const text = (await client.text()).replaceAll(comment, "");
      expect(text).toContain("The backend responded with status 200 and no event stream.");
      expect(text).not.toContain("[DONE]");
      expect(await client.ended()).not.toBe("complete");
      expect((await kept.readKey()).total_request_count).toBe(0);
    },
  );

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
