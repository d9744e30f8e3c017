import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { type Simulator, startSimulator } from "./simulator.ts";
import { connectRaw, type MessageEnding, type RawClient } from "../raw-client.ts";
import { rejectionOf } from "../rejection.ts";
import { pollUntil, pollUntilStable } from "../poll-until.ts";

let simulator: Simulator;
beforeAll(() => {
  simulator = startSimulator();
});
afterAll(() => simulator.stop());

/** A request for three tokens. As a stream: the role, three tokens, the finish reason and `[DONE]`, each an event. */
async function post(
  script: string,
  fields: object = { stream: true },
  path = "/v1/chat/completions",
): Promise<RawClient> {
  const client = await connectRaw(simulator.url);
  const body = { model: "m", max_tokens: 3, messages: [{ role: "user", content: "Hi" }], ...fields };
  client.request("POST", path, { "Content-Type": "application/json", "x-simulate": script }, JSON.stringify(body));
  return client;
}

const events = (text: string) => text.split("\n\n").slice(0, -1);

describe("a stream", () => {
  test("without a script ends completely and leaves the connection open", async () => {
    const client = await post("");
    expect(events(await client.text())).toHaveLength(6);
    expect(await client.ended()).toBe("complete");
    client.nextResponse();
    client.request("GET", "/v1/models");
    expect((await client.head()).status).toBe(200);
    client.close();
  });

  const broken: [script: string, ending: MessageEnding, wholeEvents: number][] = [
    ["die@2", "truncated", 2],
    ["reset@2", "reset", 2],
    ["die-mid-frame@3", "truncated", 2],
    ["reset-mid-frame@3", "reset", 2],
    ["close-after-head", "truncated", 0],
    ["reset-after-head", "reset", 0],
    // All events, but not the last chunk.
    ["die@6", "truncated", 6],
  ];
  for (const [script, ending, wholeEvents] of broken) {
    test(`with ${script} breaks after ${wholeEvents} whole events (${ending})`, async () => {
      const before = simulator.stats().broken;
      const client = await post(script);
      expect((await client.head()).status).toBe(200);
      expect(await client.ended()).toBe(ending);
      const text = await client.text();
      expect(events(text)).toHaveLength(wholeEvents);
      expect(text.endsWith("\n\n") || text === "").toBe(!script.includes("mid-frame"));
      expect(simulator.stats().broken).toBe(before + 1);
    });
  }

  test("with two gaps pauses twice", async () => {
    const startedAt = performance.now();
    const client = await post("gap=2000ms@1; gap=130ms@4");
    await client.nextEvent();
    expect(performance.now() - startedAt).toBeLessThan(2000);
    await client.ended();
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(2129);
  });

  test("with never-end sends everything except its end", async () => {
    const client = await post("never-end");
    await client.bodyContaining("[DONE]");
    const request = simulator.requests().at(-1);
    client.close();
    expect((await request?.ended)?.how).toBe("aborted");
    expect(await client.ended()).toBe("truncated");
  });

  test("with huge-frame contains one frame of that size", async () => {
    const client = await post("huge-frame=5MB");
    const sizes = events(await client.text()).map((event) => event.length);
    expect(Math.max(...sizes)).toBeGreaterThan(5 * 1024 * 1024);
    expect(sizes).toHaveLength(6);
  });

  test("with tiny-frames contains that many frames", async () => {
    const client = await post("tiny-frames=5000");
    expect(events(await client.text())).toHaveLength(5003);
  });

  test("with error reports an error in the format of its API and ends cleanly", async () => {
    const chat = events(await (await post("error@2")).text());
    expect(chat).toHaveLength(4);
    expect(JSON.parse(chat[2]?.slice("data: ".length) ?? "")).toHaveProperty("error.code", 500);
    const messages = events(await (await post("error@2", { stream: true }, "/v1/messages")).text());
    expect(messages.at(-1)).toStartWith('event: error\ndata: {"type":"error"');
  });

  test("with crlf and comments has the same events", async () => {
    const text = await (await post("crlf; comments")).text();
    expect(text.match(/^: keep-alive\r\n\r\n/gm)).toHaveLength(6);
    expect(text.replaceAll("\r\n", "")).not.toContain("\n");
    expect(events(text.replaceAll("\r\n", "\n"))).toHaveLength(12);
  });

  test("with split arrives in chunks of that many bytes", async () => {
    const client = await post("split=7", { stream: true, max_tokens: 1 });
    const text = await client.text();
    expect(events(text)).toHaveLength(4);
    const full = events(text).map((event) => Math.floor(`${event}\n\n`.length / 7));
    expect(
      client
        .received()
        .toString()
        .match(/\r\n7\r\n/g),
    ).toHaveLength(full.reduce((sum, count) => sum + count));
  });

  test("with truncate-json has one truncated frame and continues", async () => {
    const frames = events(await (await post("truncate-json@2")).text());
    expect(frames).toHaveLength(6);
    expect(() => JSON.parse(frames[1]?.slice("data: ".length) ?? "")).toThrow();
    expect(() => JSON.parse(frames[2]?.slice("data: ".length) ?? "")).not.toThrow();
  });

  test("with gzip is compressed frame by frame", async () => {
    const client = await post("gzip");
    expect((await client.head()).header("content-encoding")).toBe("gzip");
    expect(events(gunzipSync(await client.body()).toString())).toHaveLength(6);
  });

  test("with http10 ends with its connection", async () => {
    const client = await post("http10");
    expect((await client.head()).version).toBe("HTTP/1.0");
    expect(events(await client.text())).toHaveLength(6);
    expect(await client.ended()).toBe("complete");
    await client.closed();
  });

  test("with flood sends as long as the client reads and buffers nothing while it does not", async () => {
    const client = await post("flood");
    await client.head();
    const request = simulator.requests().at(-1);
    client.pause();
    const tokensSent = () => request?.tokensSent ?? 0;
    // The flood stops once the kernel's buffers are full.
    const before = await pollUntilStable(tokensSent);
    client.resume();
    await pollUntil(() => tokensSent() > before);
    client.reset();
    expect((await request?.ended)?.how).toBe("aborted");
  });
});

describe("a whole body", () => {
  const plain = { stream: false };

  test("with wrong-length is shorter than its Content-Length", async () => {
    const client = await post("wrong-length=10", plain);
    const announced = Number((await client.head()).header("content-length"));
    expect(await client.ended()).toBe("truncated");
    expect(client.bodyBytes()).toBe(announced - 10);
  });

  test("with a negative wrong-length is longer than its Content-Length", async () => {
    const client = await post("wrong-length=-10", plain);
    expect(await rejectionOf(client.json())).toBeInstanceOf(SyntaxError);
    expect(client.received().toString()).toEndWith("}");
    await client.closed();
  });

  test("with truncate-json is half a body, framed correctly", async () => {
    const client = await post("truncate-json", plain);
    expect(await client.ended()).toBe("complete");
    expect(await rejectionOf(client.json())).toBeInstanceOf(SyntaxError);
  });

  test("with die-mid-frame ends in the middle", async () => {
    const client = await post("die-mid-frame@1", plain);
    expect(await client.ended()).toBe("truncated");
    expect(client.bodyBytes()).toBeGreaterThan(50);
  });

  test("with gzip is compressed", async () => {
    const client = await post("gzip", plain);
    expect(JSON.parse(gunzipSync(await client.body()).toString())).toHaveProperty("object", "chat.completion");
  });

  test("with body consists of that many known bytes", async () => {
    const client = await post("body=300KB", plain);
    const body = await client.body();
    expect(body).toHaveLength(300 * 1024);
    expect(body.every((byte, index) => byte === index % 256)).toBe(true);
  });

  test("with a paced model arrives after its last token is generated", async () => {
    const startedAt = performance.now();
    const client = await post("rate=20", { stream: false, max_tokens: 4 });
    await client.head();
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(199);
  });
});

describe("a head", () => {
  test("with slow-head arrives late", async () => {
    const startedAt = performance.now();
    await (await post("slow-head=150ms")).head();
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(149);
  });

  for (const [script, ending, bytes] of [
    ["reset-before-head", "reset", 0],
    ["close-before-head", "truncated", 0],
    ["garbage", "truncated", 64],
    ["garbage=8", "truncated", 8],
  ] as const) {
    test(`with ${script} does not arrive`, async () => {
      const client = await post(script);
      expect(await client.ended()).toBe(ending);
      expect(client.received()).toHaveLength(bytes);
      expect(String(await rejectionOf(client.head()))).toContain("No head");
    });
  }

  test("with half-head ends in the middle", async () => {
    const client = await post("half-head");
    expect(await client.ended()).toBe("truncated");
    expect(client.received().toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(client.received().toString()).not.toContain("\r\n\r\n");
  });

  test("with early-hints follows a 103", async () => {
    const client = await post("early-hints");
    expect((await client.head()).status).toBe(200);
    expect(client.interim().map(({ status }) => status)).toEqual([103]);
  });

  test("with long-head has that length", async () => {
    const client = await post("long-head=100KB");
    expect((await client.head()).header("x-long")).toHaveLength(100 * 1024);
  });

  test("with set-cookies and header contains those headers in that order", async () => {
    const head = await (await post("header=X-A: 1; set-cookies; header=X-A: 2")).head();
    expect(head.all("x-a")).toEqual(["1", "2"]);
    expect(head.all("set-cookie")).toHaveLength(2);
  });

  test("with connection-close ends the connection after its response", async () => {
    const client = await post("connection-close");
    expect((await client.head()).header("connection")).toBe("close");
    expect(await client.ended()).toBe("complete");
    await client.closed();
  });

  for (const status of [204, 304]) {
    test(`with ${status} has no body and no framing`, async () => {
      const client = await post(String(status));
      const head = await client.head();
      expect(head.status).toBe(status);
      expect(head.header("content-length") ?? head.header("transfer-encoding")).toBeUndefined();
      expect(await client.ended()).toBe("complete");
    });
  }

  test("with redirect points elsewhere", async () => {
    const head = await (await post("redirect")).head();
    expect([head.status, head.header("location")]).toEqual([307, "/v1/elsewhere"]);
  });

  test("with a status brings an error in the format of its API", async () => {
    const chat = await post("status=503");
    expect([(await chat.head()).status, await chat.json()]).toMatchObject([503, { error: { code: 503 } }]);
    const messages = await post("status=529", {}, "/v1/messages");
    expect([(await messages.head()).status, await messages.json()]).toMatchObject([
      529,
      { type: "error", error: { type: "overloaded_error" } },
    ]);
    expect((await (await post("status=999")).head()).status).toBe(999);
    expect((await (await post("status=202", { stream: false })).head()).status).toBe(202);
  });

  test("with an invalid script is a 400 that names the invalid directive", async () => {
    const client = await post("explode");
    expect((await client.head()).status).toBe(400);
    expect(await client.text()).toContain('x-simulate: unknown directive \\"explode\\"');
  });
});
