import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import type { ListedKey } from "../support/admin-client.ts";
import { clientOf } from "../support/client.ts";
import type { RawClient } from "../support/raw-client.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";
import { pollUntil } from "../support/poll-until.ts";

let backend: Simulator;
type Gate = Pick<Tollgate, "send" | "sendRaw" | "readKey">;
const limited = "off for a key with a limit of tokens";
const gates = new Map<string, Gate>();
const started: Tollgate[] = [];
beforeAll(async () => {
  backend = startSimulator();
  for (const mode of ["off", "final", "continuous"]) {
    const gate = await startTollgate({
      PROXY_UPSTREAM_URL: backend.url,
      PROXY_FORCE_STREAM_USAGE: mode,
      PROXY_HAN_GUARD: "off",
    });
    started.push(gate);
    gates.set(mode, gate);
    if (mode === "off") gates.set(limited, await withLimitedKey(gate));
  }
});
afterAll(async () => {
  for (const gate of started) await gate[Symbol.asyncDispose]();
  backend.stop();
});

async function withLimitedKey({ url, admin }: Tollgate): Promise<Gate> {
  const { id, key } = await admin.createKey(limited, { tokens_per_day: 1_000_000_000 });
  const readKey = async (): Promise<ListedKey> => {
    const row = (await admin.listKeys()).find((listed) => listed.id === id);
    if (row === undefined) throw new Error("The key no longer exists");
    return row;
  };
  return { ...clientOf(url, key), readKey };
}

function gateOf(mode: string): Gate {
  const gate = gates.get(mode);
  if (gate === undefined) throw new Error(`No server in mode ${mode}`);
  return gate;
}

const chat = { model: "m", stream: true, max_tokens: 6, messages: [{ role: "user", content: "Count me" }] };
const completion = { model: "m", stream: true, max_tokens: 6, prompt: "Count me" };
const usage = { include_usage: true };
/** What a client sends, and the options for which this backend would send it what it gets. */
const streamOptions: [name: string, sent: unknown, got: object | undefined][] = [
  ["nothing", undefined, undefined],
  ["null", null, undefined],
  ["include_usage", usage, usage],
  [
    "include_usage and continuous_usage_stats",
    { ...usage, continuous_usage_stats: true },
    { ...usage, continuous_usage_stats: true },
  ],
  ["no usage", { include_usage: false }, undefined],
  ["neither usage nor none", { include_usage: "maybe" }, undefined],
  ["usage with a word", { include_usage: "true" }, usage],
  ["an object without options", {}, usage],
  ["an option of another kind", { chunk_size: 1 }, usage],
  ["an array", [], undefined],
  ["a number", 1, undefined],
  ["a string", "x", undefined],
  ["a boolean", false, undefined],
];

/** Ids and times differ from response to response. */
const steady = (text: string): string => text.replace(/"(id|created)":("[^"]*"|\d+)/g, '"$1":0');

const post = async (to: Pick<Gate, "send">, path: string, body: object, script = ""): Promise<string> =>
  (await to.send(path, body, { script })).text();
/** What the backend sends who asks it directly. */
const direct = { send: (...request: Parameters<Gate["send"]>) => clientOf(backend.url, "none").send(...request) };

const compressed = Bun.gzipSync(Buffer.from('data: {"choices":[]}\n\n'.repeat(100)));
const compressedHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n";

describe.each(["final", "continuous", limited])("with PROXY_FORCE_STREAM_USAGE=%s", (mode) => {
  describe.each([
    ["/v1/chat/completions", chat],
    ["/v1/completions", completion],
  ] as const)("on %s", (path, body) => {
    test.each(streamOptions)(
      "a client whose stream_options are %s gets what it asks for, and is counted",
      async (_, stream_options, got) => {
        const gate = gateOf(mode);
        const cuts = path === "/v1/chat/completions" ? ["", "; split=23", "; tiny-frames=50"] : [""];
        for (const script of cuts.map((cut) => `usage=321,45${cut}`)) {
          const before = await gate.readKey();
          const answer = await post(gate, path, { ...body, stream_options }, script);
          const expected = await post(direct, path, { ...body, stream_options: got }, script.replace("; split=23", ""));
          expect(steady(answer)).toBe(steady(expected));
          const after = await gate.readKey();
          expect(after.total_input_tokens - before.total_input_tokens).toBe(321);
          expect(after.total_output_tokens - before.total_output_tokens).toBe(45);
        }
      },
    );

    test("a stream that the backend compresses is sent plain, without what the proxy requested", async () => {
      const gate = gateOf(mode);
      const before = await gate.readKey();
      const response = await gate.send(path, body, { script: "gzip; usage=321,45", decompress: false });
      expect(response.headers.get("content-encoding")).toBeNull();
      expect(steady(await response.text())).toBe(steady(await post(direct, path, body)));
      const after = await gate.readKey();
      expect(after.total_input_tokens - before.total_input_tokens).toBe(321);
      expect(after.total_output_tokens - before.total_output_tokens).toBe(45);
    });
  });

  test("requests for other paths and whole responses are not changed", async () => {
    const gate = gateOf(mode);
    backend.clear();
    await post(gate, "/v1/responses", { model: "m", input: "Hi", stream: true });
    await post(gate, "/v1/messages", { ...chat, stream: true });
    await post(gate, "/v1/chat/completions", { ...chat, stream: false });
    expect(backend.requests()).toHaveLength(3);
    for (const request of backend.requests()) expect(request.json()).not.toHaveProperty("stream_options");
  });

  test("a compressed stream passes as it is if the client requests the usage itself", async () => {
    const gate = gateOf(mode);
    const stream_options = { include_usage: true, continuous_usage_stats: true };
    const sent = { script: "gzip", decompress: false };
    const response = await gate.send("/v1/chat/completions", { ...chat, stream_options }, sent);
    expect(response.headers.get("content-encoding")).toBe("gzip");
    expect(Buffer.from(Bun.gunzipSync(await response.arrayBuffer())).toString()).toContain('"usage":{');
  });

  test("a compressed stream that breaks ends with an error event and a broken connection", async () => {
    const sent = Promise.withResolvers<RawClient>();
    backend.handle(async (_, wire) => {
      wire.write(`${compressedHead}Content-Length: ${compressed.length}\r\n\r\n`);
      wire.write(compressed.subarray(0, -9));
      // A break before the client has anything gives it a whole 502.
      await (await sent.promise).bodyContaining("data:");
      wire.reset();
    });
    const client = await gateOf(mode).sendRaw("/v1/chat/completions", chat);
    sent.resolve(client);
    expect(await client.ended()).not.toBe("complete");
    backend.handle(undefined);
    expect(await client.text()).toContain('"code":"upstream_unreachable"');
  });

  test("a compressed stream whose end is missing breaks, although the backend ended its response", async () => {
    backend.handle((_, wire) => {
      wire.write(`${compressedHead}Content-Length: ${compressed.length - 9}\r\n\r\n`);
      wire.write(compressed.subarray(0, -9));
    });
    const client = await gateOf(mode).sendRaw("/v1/chat/completions", chat);
    const isWhole = (await client.ended()) === "complete" && (await client.head()).status === 200;
    backend.handle(undefined);
    expect(isWhole).toBeFalse();
  });

  test("a stream that breaks ends with all events so far, an error event and a broken connection", async () => {
    // Paced: Bun drops bytes that arrive together with the break (1.4.5).
    const script = "gap=300ms@3; reset-mid-frame@4";
    const client = await gateOf(mode).sendRaw("/v1/chat/completions", chat, { script });
    expect(await client.ended()).not.toBe("complete");
    const text = await client.text();
    expect(text).toContain('"code":"upstream_unreachable"');
    expect(text).not.toContain('"usage":{');
  });
});

describe("with PROXY_FORCE_STREAM_USAGE=continuous", () => {
  test("a stream that its client leaves half-way is counted to the token", async () => {
    const gate = gateOf("continuous");
    const before = await gate.readKey();
    backend.clear();
    const client = await gate.sendRaw(
      "/v1/chat/completions",
      { ...chat, max_tokens: 100 },
      { script: "gap=forever@9" },
    );
    const request = await backend.nextRequest();
    await pollUntil(() => request.tokensSent > 0 && client.bodyBytes() > 0);
    let events = 0;
    while (events < 9) {
      await client.nextEvent();
      events++;
    }
    client.reset();
    await request.ended;
    await pollUntil(async () => (await gate.readKey()).total_request_count > before.total_request_count);
    const after = await gate.readKey();
    expect(request.tokensSent).toBeGreaterThan(0);
    expect(after.total_output_tokens - before.total_output_tokens).toBe(request.tokensSent);
    expect(after.total_input_tokens).toBeGreaterThan(before.total_input_tokens);
  });
});

describe("with PROXY_FORCE_STREAM_USAGE=off", () => {
  test("requests are not changed", async () => {
    backend.clear();
    await post(gateOf("off"), "/v1/chat/completions", chat);
    const request = await backend.nextRequest();
    expect(Buffer.from(request.body()).toString()).toBe(JSON.stringify(chat));
  });
});
