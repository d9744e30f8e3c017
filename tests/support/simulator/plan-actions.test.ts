import { expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { connectRaw, type RawClient } from "../raw-client.ts";
import { rejectionOf } from "../rejection.ts";
import type { MessageEnding } from "../raw-message.ts";
import { startSimulator } from "./simulator.ts";
import { shared } from "../shared.ts";

// What a test would not miss if the simulator did not do it: a stream arrives unchanged through Tollgate even if it is an easy one.

const simulator = shared(() => startSimulator());

/** A request for three tokens. As a stream: the role, three tokens, the finish reason and `[DONE]`, each an event. */
async function post(script: string, fields: object = { stream: true }): Promise<RawClient> {
  const client = await connectRaw(simulator.url);
  const body = { model: "m", max_tokens: 3, messages: [{ role: "user", content: "Hi" }], ...fields };
  const headers = { "Content-Type": "application/json", "x-simulate": script };
  client.request("POST", "/v1/chat/completions", headers, JSON.stringify(body));
  return client;
}

const events = (text: string) => text.split("\n\n").slice(0, -1);

test.each<[script: string, ending: MessageEnding, wholeEvents: number]>([
  ["", "complete", 6],
  ["die@2", "truncated", 2],
  ["reset@2", "reset", 2],
  ["die-mid-frame@3", "truncated", 2],
  ["reset-mid-frame@3", "reset", 2],
  ["close-after-head", "truncated", 0],
  ["reset-after-head", "reset", 0],
  // All events, but not the last chunk.
  ["die@6", "truncated", 6],
  ["http10", "complete", 6],
  ["tiny-frames=5000", "complete", 5003],
])("a stream with %p is %s, with %d whole events", async (script, ending, wholeEvents) => {
  const client = await post(script);
  expect((await client.head()).status).toBe(200);
  expect(await client.ended()).toBe(ending);
  const text = await client.text();
  expect(events(text)).toHaveLength(wholeEvents);
  expect(text.endsWith("\n\n") || text === "").toBe(!script.includes("mid-frame"));
  client.close();
});

test.each<[script: string, shows: (text: string, client: RawClient) => unknown, value: unknown]>([
  ["huge-frame=5MB", (text) => Math.max(...events(text).map(({ length }) => length)) > 5 * 1024 * 1024, true],
  ["crlf; comments", (text) => text.match(/^: keep-alive\r\n\r\n/gm)?.length, 6],
  ["crlf", (text) => text.replaceAll("\r\n", "").includes("\n"), false],
  ["split=7", (_, client) => /\r\n7\r\n/.test(client.received().toString()), true],
  ["early-hints", (_, client) => client.interim().map(({ status }) => status), [103]],
])("a stream with %p shows it", async (script, shows, value) => {
  const client = await post(script);
  expect(shows(await client.text(), client)).toEqual(value);
  client.close();
});

test("a stream has a truncated frame in its middle, or is compressed", async () => {
  const frames = events(await (await post("truncate-json@2")).text());
  expect(frames).toHaveLength(6);
  expect(() => JSON.parse(frames[1]?.slice("data: ".length) ?? "")).toThrow();
  expect(() => JSON.parse(frames[2]?.slice("data: ".length) ?? "")).not.toThrow();
  const compressed = await post("gzip");
  expect(events(gunzipSync(await compressed.body()).toString())).toHaveLength(6);
});

test("a whole body is shorter or longer than its Content-Length, or half a body", async () => {
  const short = await post("wrong-length=10", { stream: false });
  expect(await short.ended()).toBe("truncated");
  expect(short.bodyBytes()).toBe(Number((await short.head()).header("content-length")) - 10);
  for (const script of ["wrong-length=-10", "truncate-json"]) {
    const client = await post(script, { stream: false });
    expect(await rejectionOf(client.json())).toBeInstanceOf(SyntaxError);
    expect(client.received().toString().endsWith("}")).toBe(script === "wrong-length=-10");
  }
});

test.each([
  ["reset-before-head", "reset", 0],
  ["close-before-head", "truncated", 0],
  ["garbage", "truncated", 64],
  ["garbage=8", "truncated", 8],
] as const)("with %p no head arrives", async (script, ending, bytes) => {
  const client = await post(script);
  expect(await client.ended()).toBe(ending);
  expect(client.received()).toHaveLength(bytes);
});

test("a head is long, repeats headers, or ends its connection", async () => {
  expect((await (await post("long-head=100KB")).head()).header("x-long")).toHaveLength(100 * 1024);
  const head = await (await post("header=X-A: 1; set-cookies; header=X-A: 2")).head();
  expect(head.all("x-a")).toEqual(["1", "2"]);
  expect(head.all("set-cookie")).toHaveLength(2);
  const client = await post("connection-close");
  expect((await client.head()).header("connection")).toBe("close");
  await client.closed();
});
