import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { connectRaw, type MessageEnding, type RawClient } from "../support/raw-client.ts";
import { rejectionOf } from "../support/rejection.ts";
import { until } from "../support/until.ts";

let simulator: Simulator;
beforeAll(() => {
  simulator = startSimulator();
});
afterAll(() => simulator.stop());

/** Five frames at three tokens: the role, the tokens, the finish; then `[DONE]`. */
async function ask(
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
  test("without a script ends whole and leaves the connection open", async () => {
    const client = await ask("");
    expect(events(await client.text())).toHaveLength(6);
    expect(await client.ended()).toBe("complete");
    client.next();
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
    // The last frame is there, the last chunk is not.
    ["die@6", "truncated", 6],
  ];
  for (const [script, ending, wholeEvents] of broken) {
    test(`with ${script} breaks after ${wholeEvents} whole events (${ending})`, async () => {
      const before = simulator.stats().broken;
      const client = await ask(script);
      expect((await client.head()).status).toBe(200);
      expect(await client.ended()).toBe(ending);
      const text = await client.text();
      expect(events(text)).toHaveLength(wholeEvents);
      expect(text.endsWith("\n\n") || text === "").toBe(!script.includes("mid-frame"));
      expect(simulator.stats().broken).toBe(before + 1);
    });
  }

  test("with two gaps is silent twice", async () => {
    const startedAt = performance.now();
    const client = await ask("gap=120ms@1; gap=130ms@4");
    await client.nextEvent();
    expect(performance.now() - startedAt).toBeLessThan(120);
    await client.ended();
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(249);
  });

  test("with never-end sends everything but its end", async () => {
    const client = await ask("never-end");
    await client.bodyHolding("[DONE]");
    const request = simulator.requests().at(-1);
    client.close();
    expect((await request?.ended)?.how).toBe("aborted");
    expect(await client.ended()).toBe("truncated");
  });

  test("with huge-frame has one frame of that size in it", async () => {
    const client = await ask("huge-frame=5MB");
    const sizes = events(await client.text()).map((event) => event.length);
    expect(Math.max(...sizes)).toBeGreaterThan(5 * 1024 * 1024);
    expect(sizes).toHaveLength(6);
  });

  test("with tiny-frames has that many", async () => {
    const client = await ask("tiny-frames=5000");
    expect(events(await client.text())).toHaveLength(5003);
  });

  test("with error tells of a failure inside the stream and ends cleanly, in the words of its API", async () => {
    const chat = events(await (await ask("error@2")).text());
    expect(chat).toHaveLength(4);
    expect(JSON.parse(chat[2]?.slice("data: ".length) ?? "")).toHaveProperty("error.code", 500);
    const messages = events(await (await ask("error@2", { stream: true }, "/v1/messages")).text());
    expect(messages.at(-1)).toStartWith('event: error\ndata: {"type":"error"');
  });

  test("with crlf and comments is the same stream in another spelling", async () => {
    const text = await (await ask("crlf; comments")).text();
    expect(text.match(/^: keep-alive\r\n\r\n/gm)).toHaveLength(6);
    expect(text.replaceAll("\r\n", "")).not.toContain("\n");
    expect(events(text.replaceAll("\r\n", "\n"))).toHaveLength(12);
  });

  test("with split comes in chunks of so many bytes", async () => {
    const client = await ask("split=7", { stream: true, max_tokens: 1 });
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

  test("with truncate-json has half a frame, and goes on", async () => {
    const frames = events(await (await ask("truncate-json@2")).text());
    expect(frames).toHaveLength(6);
    expect(() => JSON.parse(frames[1]?.slice("data: ".length) ?? "")).toThrow();
    expect(() => JSON.parse(frames[2]?.slice("data: ".length) ?? "")).not.toThrow();
  });

  test("with gzip is compressed, frame by frame", async () => {
    const client = await ask("gzip");
    expect((await client.head()).header("content-encoding")).toBe("gzip");
    expect(events(gunzipSync(await client.body()).toString())).toHaveLength(6);
  });

  test("with http10 ends with its connection", async () => {
    const client = await ask("http10");
    expect((await client.head()).version).toBe("HTTP/1.0");
    expect(events(await client.text())).toHaveLength(6);
    expect(await client.ended()).toBe("complete");
    await client.closed();
  });

  test("with flood goes on for as long as somebody reads, and holds nothing for who does not", async () => {
    const client = await ask("flood");
    await client.head();
    const request = simulator.requests().at(-1);
    client.pause();
    let before = -1;
    // The kernel's buffers fill up; then the flood has to wait.
    while (before !== request?.tokensSent) {
      before = request?.tokensSent ?? 0;
      await Bun.sleep(100);
    }
    client.resume();
    await until(() => (request?.tokensSent ?? 0) > before);
    client.reset();
    expect((await request?.ended)?.how).toBe("aborted");
  });
});

describe("a whole body", () => {
  const plain = { stream: false };

  test("with wrong-length is shorter than it says", async () => {
    const client = await ask("wrong-length=10", plain);
    const announced = Number((await client.head()).header("content-length"));
    expect(await client.ended()).toBe("truncated");
    expect(client.bodyBytes()).toBe(announced - 10);
  });

  test("with a negative wrong-length is longer than it says", async () => {
    const client = await ask("wrong-length=-10", plain);
    expect(await rejectionOf(client.json())).toBeInstanceOf(SyntaxError);
    expect(client.received().toString()).toEndWith("}");
    await client.closed();
  });

  test("with truncate-json is half of it, properly framed", async () => {
    const client = await ask("truncate-json", plain);
    expect(await client.ended()).toBe("complete");
    expect(await rejectionOf(client.json())).toBeInstanceOf(SyntaxError);
  });

  test("with die-mid-frame breaks in the middle", async () => {
    const client = await ask("die-mid-frame@1", plain);
    expect(await client.ended()).toBe("truncated");
    expect(client.bodyBytes()).toBeGreaterThan(50);
  });

  test("with gzip is compressed", async () => {
    const client = await ask("gzip", plain);
    expect(JSON.parse(gunzipSync(await client.body()).toString())).toHaveProperty("object", "chat.completion");
  });

  test("with body is that many known bytes", async () => {
    const client = await ask("body=300KB", plain);
    const body = await client.body();
    expect(body).toHaveLength(300 * 1024);
    expect(body.every((byte, index) => byte === index % 256)).toBe(true);
  });

  test("with a paced model comes when its last token would be there", async () => {
    const startedAt = performance.now();
    const client = await ask("rate=20", { stream: false, max_tokens: 4 });
    await client.head();
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(199);
  });
});

describe("a head", () => {
  test("with slow-head comes late", async () => {
    const startedAt = performance.now();
    await (await ask("slow-head=150ms")).head();
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(149);
  });

  for (const [script, ending, bytes] of [
    ["reset-before-head", "reset", 0],
    ["close-before-head", "truncated", 0],
    ["garbage", "truncated", 64],
    ["garbage=8", "truncated", 8],
  ] as const) {
    test(`with ${script} does not come`, async () => {
      const client = await ask(script);
      expect(await client.ended()).toBe(ending);
      expect(client.received()).toHaveLength(bytes);
      expect(String(await rejectionOf(client.head()))).toContain("No head");
    });
  }

  test("with half-head stops in the middle", async () => {
    const client = await ask("half-head");
    expect(await client.ended()).toBe("truncated");
    expect(client.received().toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(client.received().toString()).not.toContain("\r\n\r\n");
  });

  test("with early-hints comes second", async () => {
    const client = await ask("early-hints");
    expect((await client.head()).status).toBe(200);
    expect(client.interim().map(({ status }) => status)).toEqual([103]);
  });

  test("with long-head is that long", async () => {
    const client = await ask("long-head=100KB");
    expect((await client.head()).header("x-long")).toHaveLength(100 * 1024);
  });

  test("with set-cookies and header has them in that order", async () => {
    const head = await (await ask("header=X-A: 1; set-cookies; header=X-A: 2")).head();
    expect(head.all("x-a")).toEqual(["1", "2"]);
    expect(head.all("set-cookie")).toHaveLength(2);
  });

  test("with connection-close is the last one of its connection", async () => {
    const client = await ask("connection-close");
    expect((await client.head()).header("connection")).toBe("close");
    expect(await client.ended()).toBe("complete");
    await client.closed();
  });

  for (const status of [204, 304]) {
    test(`with ${status} has no body and no framing`, async () => {
      const client = await ask(String(status));
      const head = await client.head();
      expect(head.status).toBe(status);
      expect(head.header("content-length") ?? head.header("transfer-encoding")).toBeUndefined();
      expect(await client.ended()).toBe("complete");
    });
  }

  test("with redirect points elsewhere", async () => {
    const head = await (await ask("redirect")).head();
    expect([head.status, head.header("location")]).toEqual([307, "/v1/elsewhere"]);
  });

  test("with a status has an error in the words of its API", async () => {
    const chat = await ask("status=503");
    expect([(await chat.head()).status, await chat.json()]).toMatchObject([503, { error: { code: 503 } }]);
    const messages = await ask("status=529", {}, "/v1/messages");
    expect([(await messages.head()).status, await messages.json()]).toMatchObject([
      529,
      { type: "error", error: { type: "overloaded_error" } },
    ]);
    expect((await (await ask("status=999")).head()).status).toBe(999);
    expect((await (await ask("status=202", { stream: false })).head()).status).toBe(202);
  });

  test("with a script that nobody understands is a 400 that says so", async () => {
    const client = await ask("explode");
    expect((await client.head()).status).toBe(400);
    expect(await client.text()).toContain('x-simulate does not know \\"explode\\"');
  });
});
