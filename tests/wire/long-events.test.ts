import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import { pollUntil } from "../support/poll-until.ts";
import { connectRaw } from "../support/raw-client.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

const megabyte = 1024 * 1024;
const maxHeldEventBytes = 64 * 1024;

/** Its responses are event streams that the test writes. */
let backend: Server;
let response: PromiseWithResolvers<ServerResponse>;
const gates = new Map<string, Tollgate>();
beforeAll(async () => {
  backend = createServer((request, outgoing) => {
    request.resume();
    outgoing.writeHead(200, { "content-type": "text/event-stream" });
    response.resolve(outgoing);
  });
  await new Promise<void>((resolve) => void backend.listen(0, "127.0.0.1", resolve));
  const { port } = backend.address() as AddressInfo;
  for (const mode of ["off", "final", "continuous"]) {
    const settings = { PROXY_UPSTREAM_URL: `http://127.0.0.1:${port}`, PROXY_FORCE_STREAM_USAGE: mode };
    gates.set(mode, await startTollgate(settings));
  }
});
afterAll(async () => {
  for (const gate of gates.values()) await gate[Symbol.asyncDispose]();
  backend.closeAllConnections();
  backend.close();
});

interface Stream {
  path: string;
  /** Up to the middle of a string in the long event. */
  start: string;
  /** From the middle of that string. */
  rest: string;
  /** What only the proxy requested. */
  hidden: string;
}

const counts = '"usage":{"prompt_tokens":7,"completion_tokens":9}';
const ended = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
const completion = (path: string): Stream => ({
  path,
  start: 'data: {"choices":[{"index":0,"delta":{"content":"',
  rest: `"},"finish_reason":null}]}\n\n${ended}data: [DONE]\n\n`,
  hidden: "",
});
const hiding = (path: string): Stream => {
  const hidden = `data: {"choices":[],${counts}}\n\n`;
  return { ...completion(path), rest: completion(path).rest.replace("data: [DONE]", `${hidden}data: [DONE]`), hidden };
};
const streams: Record<string, Stream> = {
  chat: hiding("/v1/chat/completions"),
  completions: hiding("/v1/completions"),
  "chat with usage in the long event": {
    ...completion("/v1/chat/completions"),
    rest: completion("").rest.replace("null}]}", `null}],${counts}}`),
  },
  messages: {
    path: "/v1/messages",
    start: 'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"',
    rest: '"},"usage":{"input_tokens":7,"output_tokens":9}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n',
    hidden: "",
  },
  "responses, whose long event is the last": {
    path: "/v1/responses",
    start: 'event: response.completed\ndata: {"type":"response.completed","response":{"id":"r","output":[{"text":"',
    rest: '"}],"usage":{"input_tokens":7,"output_tokens":9}}}\n\n',
    hidden: "",
  },
};

// The limited keys come first: after the others, the backend is known to send usage unasked, and that is kept.
const rows: [mode: string, stream: string, fields: object][] = [
  ["off", "chat", { tokens_per_day: 1_000_000_000 }],
  ["off", "completions", { tokens_per_month: 1_000_000_000 }],
  ["off", "chat with usage in the long event", {}],
  ["off", "messages", {}],
  ["off", "responses, whose long event is the last", {}],
  ["final", "chat", {}],
  ["final", "completions", {}],
  ["continuous", "chat", {}],
  ["continuous", "chat with usage in the long event", {}],
];

describe("an event of 32 MiB", () => {
  test.each(rows)("with PROXY_FORCE_STREAM_USAGE=%s on %s of a key with %j", async (mode, name, fields) => {
    const { path, start, rest, hidden } = streams[name] as Stream;
    const gate = gates.get(mode) as Tollgate;
    const { key, id } = await gate.admin.createKey("long", { ...fields });
    response = Promise.withResolvers();
    const client = await connectRaw(gate.url, { keepBody: false });
    const headers = { "x-api-key": key, "Content-Type": "application/json" };
    client.request("POST", path, headers, JSON.stringify({ model: "m", stream: true, prompt: "Hi" }));
    const outgoing = await response.promise;
    const send = (bytes: string): Promise<void> =>
      new Promise((resolve) => void outgoing.write(bytes, () => resolve()));

    await send(start);
    const part = "x".repeat(megabyte);
    for (let parts = 1; parts <= 32; parts++) {
      await send(part);
      const sent = start.length + parts * megabyte;
      await pollUntil(() => client.bodyBytes() >= sent - maxHeldEventBytes);
    }
    await send(rest);
    outgoing.end();
    expect(await client.ended()).toBe("complete");
    expect(client.bodyBytes()).toBe(start.length + 32 * megabyte + rest.length - hidden.length);
    client.close();
    const listed = (await gate.admin.listKeys()).find((row) => row.id === id);
    expect(listed).toMatchObject({ total_request_count: 1, total_input_tokens: 7, total_output_tokens: 9 });
  });
});
